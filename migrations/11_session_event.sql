-- What else happened in a session: a compaction and its summary, a subagent's start and answer, a turn that failed, a slash
-- command that became a prompt, a change of folder. One table for all, because they are read together, as a session's story,
-- and none of them has rows that point to it. `event_key` names the event whoever tells of it, so that the hook and the transcript
-- are one row.

create table mem_session_events (
    id bigint generated always as identity constraint mem_session_events_pkey primary key,
    session_id bigint not null
        constraint mem_session_events_session_fkey references mem_sessions (id) on delete cascade,
    event_key text not null,
    kind text not null,
    prompt_id text,
    subject text,
    body text,
    details jsonb not null default '{}',
    truncated_at_bytes bigint,
    occurred_at timestamptz not null,
    recorded_at timestamptz not null default now(),
    constraint mem_session_events_session_key_unique unique (session_id, event_key),
    constraint mem_session_events_kind_known check (kind in (
        'compacted', 'subagent_started', 'subagent_ended', 'turn_failed', 'prompt_expanded', 'folder_changed',
        'permission_denied', 'noticed'))
);

create index mem_session_events_session_occurred_idx on mem_session_events (session_id, occurred_at);
