-- Work for the worker. A job is enqueued in the transaction of the event that causes it, claimed with
-- `for update skip locked`, and held by a lease instead of an open transaction: a worker that dies holds nothing for ever.
-- A finished job is deleted; one that failed too often stays as `dead` with its last error.

create table mem_observation_queue (
    id bigint generated always as identity constraint mem_observation_queue_pkey primary key,
    kind text not null,
    payload jsonb not null,
    dedupe_key text,
    status text not null default 'pending',
    attempts integer not null default 0,
    run_after timestamptz not null default now(),
    locked_until timestamptz,
    locked_by text,
    last_error text,
    created_at timestamptz not null default now(),
    constraint mem_observation_queue_status_known check (status in ('pending', 'dead'))
);

-- The claim: due jobs of a kind in the order they came.
create index mem_observation_queue_claim_idx on mem_observation_queue (kind, run_after, id) where status = 'pending';
-- The same work waits only once. A claim clears the key, so that work on something that changes while a job runs can be
-- enqueued again, and a retry meets no twin.
create unique index mem_observation_queue_dedupe_unique on mem_observation_queue (kind, dedupe_key)
    where status = 'pending';

create function mem_notify_observation_queue() returns trigger language plpgsql as $$
begin
    perform pg_notify('mem_observation_queue', '');
    return null;
end
$$;

-- Once a statement: workers wake on it and look at the whole queue.
create trigger mem_observation_queue_inserted after insert on mem_observation_queue
    for each statement execute function mem_notify_observation_queue();
