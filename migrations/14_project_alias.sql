-- Repositories move, change their remote, give their place to another, and are wrongly taken for one. So an alias of a place
-- remembers which repository was there (when its own folder was made, and that file's number on the disk); an alias that a
-- person chose is above every rule; a session remembers under which key it came, so that it can be given back; and a merged
-- project keeps its row, so that whoever still holds its id is led on and the merge can be undone.

alter table mem_projects
    add column merged_into bigint constraint mem_projects_merged_into_fkey references mem_projects (id),
    add constraint mem_projects_merged_into_another check (merged_into <> id);

create index mem_projects_merged_into_idx on mem_projects (merged_into) where merged_into is not null;

alter table mem_project_aliases
    add column repository_created_at_us bigint,
    add column repository_inode bigint,
    add column is_chosen boolean not null default false;

-- A checkout that was moved is looked for by these.
create index mem_project_aliases_repository_idx on mem_project_aliases (repository_created_at_us, repository_inode)
    where repository_inode is not null;

alter table mem_sessions add column project_key text;

create table mem_project_merges (
    id bigint generated always as identity constraint mem_project_merges_pkey primary key,
    from_project_id bigint not null
        constraint mem_project_merges_from_fkey references mem_projects (id) on delete cascade,
    into_project_id bigint not null
        constraint mem_project_merges_into_fkey references mem_projects (id) on delete cascade,
    session_ids bigint[] not null,
    observation_ids bigint[] not null,
    lesson_ids bigint[] not null,
    alias_keys text[] not null,
    -- Projects that had been merged into the one that was now merged itself.
    follower_ids bigint[] not null,
    merged_at timestamptz not null default now(),
    undone_at timestamptz
);

create index mem_project_merges_into_idx on mem_project_merges (into_project_id);
