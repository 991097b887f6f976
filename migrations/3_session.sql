-- One run of one agent. The row is written by whichever event of the session comes first and is what serialises the
-- session's events: every event updates it, so two transactions never number the turns of one session at once.

create table mem_sessions (
    id bigint generated always as identity constraint mem_sessions_pkey primary key,
    agent text not null,
    external_id text not null,
    project_id bigint not null constraint mem_sessions_project_fkey references mem_projects (id),
    branch text,
    worktree text,
    working_folder text,
    commit_sha text,
    model text,
    source text,
    transcript_path text,
    status text not null default 'active',
    end_reason text,
    started_at timestamptz not null,
    ended_at timestamptz,
    last_event_at timestamptz not null,
    recorded_at timestamptz not null default now(),
    constraint mem_sessions_agent_external_id_unique unique (agent, external_id),
    constraint mem_sessions_status_known check (status in ('active', 'ended'))
);

create index mem_sessions_project_started_idx on mem_sessions (project_id, started_at desc);
create index mem_sessions_last_event_idx on mem_sessions (last_event_at desc);
