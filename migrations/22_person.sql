-- One server for a team: a token may be a person's, and what their agents record is theirs until its project is shared. Without a
-- person a row is the installation's own, as all rows were before. A token is one of those that a request may carry; its hash is looked
-- up at each request, so it says when it was last used.

create table mem_people (
    id bigint generated always as identity constraint mem_people_pkey primary key,
    name text not null constraint mem_people_name_unique unique,
    created_at timestamptz not null default now(),
    constraint mem_people_name_not_empty check (name <> '')
);

alter table mem_api_tokens
    add column person_id bigint constraint mem_api_tokens_person_fkey references mem_people (id),
    add constraint mem_api_tokens_name_not_empty check (name <> ''),
    add constraint mem_api_tokens_scopes_known check (scopes <@ array['ingest', 'recall', 'admin'] and scopes <> '{}');

-- A project with a person is seen by that person alone, until it is shared.
alter table mem_projects
    add column person_id bigint constraint mem_projects_person_fkey references mem_people (id),
    add column is_shared boolean not null default false;

alter table mem_sessions add column person_id bigint constraint mem_sessions_person_fkey references mem_people (id);
alter table mem_observations add column person_id bigint constraint mem_observations_person_fkey references mem_people (id);

create index mem_projects_person_idx on mem_projects (person_id) where person_id is not null;
