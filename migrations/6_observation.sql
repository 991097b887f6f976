-- What somebody chose to keep: notes that a person or an agent saved, and digests of sessions. A note is never edited in
-- place: the newer one points back from `superseded_by`, so that what was once recalled can still be explained.

create table mem_observations (
    id bigint generated always as identity constraint mem_observations_pkey primary key,
    project_id bigint constraint mem_observations_project_fkey references mem_projects (id),
    session_id bigint constraint mem_observations_session_fkey references mem_sessions (id) on delete set null,
    kind text not null default 'note',
    title text not null,
    body text not null,
    source text not null,
    superseded_by bigint constraint mem_observations_superseded_by_fkey references mem_observations (id),
    occurred_at timestamptz not null default now(),
    recorded_at timestamptz not null default now(),
    constraint mem_observations_kind_known check (kind in ('note', 'digest')),
    constraint mem_observations_source_known check (source in ('person', 'agent', 'worker', 'import'))
);

create index mem_observations_project_occurred_idx on mem_observations (project_id, occurred_at desc);
