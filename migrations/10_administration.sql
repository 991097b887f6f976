-- Who may do what, and what was done. Tokens are kept as hashes; a lost database gives nobody access. Backfill runs are
-- kept so that one can be undone by its id.

create table mem_api_tokens (
    id bigint generated always as identity constraint mem_api_tokens_pkey primary key,
    name text not null constraint mem_api_tokens_name_unique unique,
    token_hash bytea not null constraint mem_api_tokens_hash_unique unique,
    scopes text[] not null,
    created_at timestamptz not null default now(),
    last_used_at timestamptz,
    revoked_at timestamptz
);

create table mem_audit_log (
    id bigint generated always as identity constraint mem_audit_log_pkey primary key,
    actor text not null,
    action text not null,
    subject text,
    details jsonb not null default '{}',
    occurred_at timestamptz not null default now()
);

create index mem_audit_log_occurred_idx on mem_audit_log (occurred_at desc);

create table mem_backfill_runs (
    id bigint generated always as identity constraint mem_backfill_runs_pkey primary key,
    agent text not null,
    source_path text not null,
    status text not null default 'running',
    counts jsonb not null default '{}',
    started_at timestamptz not null default now(),
    finished_at timestamptz,
    constraint mem_backfill_runs_status_known check (status in ('running', 'done', 'failed', 'rolled_back'))
);
