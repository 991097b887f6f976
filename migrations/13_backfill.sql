-- The same session can be told twice: by hooks while it runs, and by the agent's own transcript afterwards. Both use the agent's
-- ids where it has them. Where its hooks send none, a row from a hook carries an id of ours (`live_event_id`, and `event:<id>` for a
-- key) until the transcript's row of the same content claims it, or the other way round.
-- What a backfill inserted knows its run, so that the run can be taken back.

alter table mem_sessions
    add column backfill_run_id bigint
        constraint mem_sessions_backfill_run_fkey references mem_backfill_runs (id) on delete set null;

alter table mem_user_prompts
    add column origin text not null default 'hook',
    add column live_event_id text,
    add column backfill_run_id bigint
        constraint mem_user_prompts_backfill_run_fkey references mem_backfill_runs (id) on delete set null,
    add constraint mem_user_prompts_origin_known check (origin in ('hook', 'transcript'));

-- An agent whose hooks do not say whether a call worked leaves that open; its transcript settles it.
alter table mem_tool_calls
    add column origin text not null default 'hook',
    add column live_event_id text,
    add column outcome_is_assumed boolean not null default false,
    add column backfill_run_id bigint
        constraint mem_tool_calls_backfill_run_fkey references mem_backfill_runs (id) on delete set null,
    add constraint mem_tool_calls_origin_known check (origin in ('hook', 'transcript'));

alter table mem_session_events
    add column backfill_run_id bigint
        constraint mem_session_events_backfill_run_fkey references mem_backfill_runs (id) on delete set null;

-- `import_key` names a note in the system that it was imported from.
alter table mem_observations
    add column import_key text constraint mem_observations_import_key_unique unique,
    add column backfill_run_id bigint
        constraint mem_observations_backfill_run_fkey references mem_backfill_runs (id) on delete set null;

create unique index mem_user_prompts_live_event_unique on mem_user_prompts (session_id, live_event_id)
    where live_event_id is not null;
create unique index mem_tool_calls_live_event_unique on mem_tool_calls (session_id, live_event_id)
    where live_event_id is not null;
create index mem_sessions_backfill_run_idx on mem_sessions (backfill_run_id) where backfill_run_id is not null;
create index mem_user_prompts_backfill_run_idx on mem_user_prompts (backfill_run_id) where backfill_run_id is not null;
create index mem_tool_calls_backfill_run_idx on mem_tool_calls (backfill_run_id) where backfill_run_id is not null;
create index mem_session_events_backfill_run_idx on mem_session_events (backfill_run_id)
    where backfill_run_id is not null;
create index mem_observations_backfill_run_idx on mem_observations (backfill_run_id) where backfill_run_id is not null;
