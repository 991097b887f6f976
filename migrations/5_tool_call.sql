-- What the agent did: one row a tool call, with its whole input, and joined to the prompt it served. The agent sends the
-- same `prompt_id` with both; `prev_user_prompt_id` is that join resolved, by whichever of the two arrives second. The share of
-- calls that have it is the linkage ratio.

create table mem_tool_calls (
    id bigint generated always as identity constraint mem_tool_calls_pkey primary key,
    session_id bigint not null
        constraint mem_tool_calls_session_fkey references mem_sessions (id) on delete cascade,
    tool_use_id text not null,
    prompt_id text,
    prev_user_prompt_id bigint
        constraint mem_tool_calls_prompt_fkey references mem_user_prompts (id) on delete set null,
    turn_index integer,
    turn_subindex integer,
    tool_name text not null,
    input jsonb not null,
    output_preview text,
    success boolean not null,
    error text,
    duration_ms bigint,
    subagent_id text,
    subagent_type text,
    working_folder text,
    commit_sha text,
    content_hash bytea not null,
    truncated_at_bytes bigint,
    occurred_at timestamptz not null,
    recorded_at timestamptz not null default now(),
    constraint mem_tool_calls_session_tool_use_unique unique (session_id, tool_use_id),
    constraint mem_tool_calls_failure_has_error check (success or error is not null)
);

create index mem_tool_calls_session_occurred_idx on mem_tool_calls (session_id, occurred_at);
create index mem_tool_calls_prompt_idx on mem_tool_calls (prev_user_prompt_id);
-- Calls that wait for their prompt, to be joined when it arrives.
create index mem_tool_calls_unlinked_idx on mem_tool_calls (session_id, prompt_id) where prev_user_prompt_id is null;
