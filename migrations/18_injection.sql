-- What agents were told without having asked: the brief at a session's start, the hits for a prompt. Nothing is told twice in one
-- session, and whoever writes the row may tell it: the same event may come by two registrations at once. In the database and not in
-- the server's memory, so that a restart does not repeat everything.

create table mem_injections (
    id bigint generated always as identity constraint mem_injections_pkey primary key,
    session_id bigint not null
        constraint mem_injections_session_fkey references mem_sessions (id) on delete cascade,
    occasion text not null,
    document_kind text,
    document_id bigint,
    content_hash bytea not null,
    injected_at timestamptz not null default now(),
    constraint mem_injections_session_content_unique unique (session_id, content_hash),
    constraint mem_injections_occasion_known check (occasion in ('brief', 'prompt_hits'))
);

create unique index mem_injections_session_document_unique on mem_injections (session_id, document_kind, document_id)
    where document_id is not null;

-- How often each spoke and how often it did not. Sessions go with time; these counts stay.
create table mem_injection_counts (
    occasion text not null,
    outcome text not null,
    times bigint not null,
    constraint mem_injection_counts_pkey primary key (occasion, outcome),
    constraint mem_injection_counts_occasion_known check (occasion in ('brief', 'prompt_hits')),
    constraint mem_injection_counts_outcome_known check (outcome in ('spoke', 'silent', 'late', 'failed'))
);

-- A session has one digest, which a later end of it writes anew.
create unique index mem_observations_session_digest_unique on mem_observations (session_id)
    where kind = 'digest' and source = 'worker';
