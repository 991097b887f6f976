-- Whose memory it is. A project is a repository, not a folder: clones, worktrees and moved checkouts of one repository
-- share one row, found by `identity_key` (the normalised remote, else the git common folder, else the folder itself).
-- Former keys stay valid as aliases, so that renaming a remote forks nothing.

create table mem_projects (
    id bigint generated always as identity constraint mem_projects_pkey primary key,
    identity_key text not null constraint mem_projects_identity_key_unique unique,
    name text not null,
    root text,
    remote_url text,
    created_at timestamptz not null default now(),
    constraint mem_projects_name_not_empty check (name <> '')
);

-- People and agents name a project by its short name, which need not be unique.
create index mem_projects_name_idx on mem_projects (name);

create table mem_project_aliases (
    identity_key text not null constraint mem_project_aliases_pkey primary key,
    project_id bigint not null
        constraint mem_project_aliases_project_fkey references mem_projects (id) on delete cascade,
    created_at timestamptz not null default now()
);

create index mem_project_aliases_project_idx on mem_project_aliases (project_id);
