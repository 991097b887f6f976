-- What the person asked, and the assistant's closing answer to it. `prompt` is null while only the answer is known (the
-- hooks were registered in the middle of a turn, or the prompt still lies in the spool).

create table mem_user_prompts (
    id bigint generated always as identity constraint mem_user_prompts_pkey primary key,
    session_id bigint not null
        constraint mem_user_prompts_session_fkey references mem_sessions (id) on delete cascade,
    prompt_id text not null,
    turn_index integer not null,
    prompt text,
    source text,
    answer text,
    answered_at timestamptz,
    truncated_at_bytes bigint,
    occurred_at timestamptz not null,
    recorded_at timestamptz not null default now(),
    constraint mem_user_prompts_session_prompt_unique unique (session_id, prompt_id)
);

create index mem_user_prompts_session_occurred_idx on mem_user_prompts (session_id, occurred_at);
