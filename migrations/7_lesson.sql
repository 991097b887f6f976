-- Rules that should be read before a risky call, and every time one fired. Only a person can make a lesson deny a call, so
-- what was mined or written by an agent starts as proposed.

create table mem_lessons (
    id bigint generated always as identity constraint mem_lessons_pkey primary key,
    project_id bigint constraint mem_lessons_project_fkey references mem_projects (id) on delete cascade,
    title text not null,
    rule text not null,
    severity text not null,
    trigger_tool text,
    trigger_pattern text,
    source text not null,
    status text not null,
    enforced_by text,
    created_at timestamptz not null default now(),
    updated_at timestamptz not null default now(),
    constraint mem_lessons_severity_known check (severity in ('critical', 'warning', 'info')),
    constraint mem_lessons_source_known check (source in ('person', 'agent', 'mined')),
    constraint mem_lessons_status_known check (status in ('proposed', 'active', 'retired', 'enforced'))
);

create index mem_lessons_status_idx on mem_lessons (status, project_id);

create table mem_lesson_events (
    id bigint generated always as identity constraint mem_lesson_events_pkey primary key,
    lesson_id bigint not null
        constraint mem_lesson_events_lesson_fkey references mem_lessons (id) on delete cascade,
    session_id bigint constraint mem_lesson_events_session_fkey references mem_sessions (id) on delete cascade,
    tool_use_id text,
    outcome text not null,
    occurred_at timestamptz not null,
    constraint mem_lesson_events_outcome_known check (outcome in ('fired', 'obeyed', 'overridden', 'repeated_failure'))
);

create index mem_lesson_events_lesson_idx on mem_lesson_events (lesson_id, occurred_at desc);
