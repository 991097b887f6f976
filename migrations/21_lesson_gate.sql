-- A lesson stops a call before it runs, once, and the journal has to tell what came of that. So a lesson knows what fires it, whether it may
-- stop a call at all (only a person can allow that), and on what it rests; and an event knows which action it was about, so that the
-- same one is let pass when it is repeated, on whichever server.

alter table mem_lessons
    add column why text,
    add column trigger_field text,
    add column trigger_meaning text,
    add column trigger_threshold real,
    add column may_stop boolean not null default false,
    add column asks_person boolean not null default false,
    add column evidence text[] not null default '{}',
    add column fingerprint text,
    add column confirmed_at timestamptz,
    add constraint mem_lessons_trigger_field_known check (trigger_field in ('command', 'path', 'content', 'input')),
    add constraint mem_lessons_enforced_named check (status <> 'enforced' or enforced_by is not null);

create unique index mem_lessons_fingerprint_unique on mem_lessons (coalesce(project_id, 0), fingerprint)
    where fingerprint is not null;

alter table mem_lesson_events
    add column agent text,
    add column session text,
    add column fired_id bigint constraint mem_lesson_events_fired_fkey references mem_lesson_events (id) on delete cascade,
    add column decision text,
    add column action text,
    add column action_key text,
    add column once_key text,
    add column retry text,
    add constraint mem_lesson_events_decision_known check (decision in ('stopped', 'asked', 'informed')),
    add constraint mem_lesson_events_retry_known check (retry in ('same', 'changed', 'none'));

create unique index mem_lesson_events_once on mem_lesson_events (agent, session, lesson_id, once_key) where outcome = 'fired';
create unique index mem_lesson_events_outcome_once on mem_lesson_events (fired_id, outcome) where fired_id is not null;

-- Every server keeps the active lessons in memory; whoever changes one, also by hand, tells them.
create function mem_lessons_changed() returns trigger language plpgsql as $$
begin
    perform pg_notify('mem_lessons', '');
    return null;
end
$$;

create trigger mem_lessons_changed after insert or update or delete on mem_lessons
    for each statement execute function mem_lessons_changed();

-- A lesson is found by a search as a note of its own kind, which follows the lesson.
alter table mem_observations
    add column lesson_id bigint constraint mem_observations_lesson_fkey references mem_lessons (id) on delete cascade,
    drop constraint mem_observations_kind_known,
    add constraint mem_observations_kind_known check (kind in ('note', 'digest', 'lesson'));

create unique index mem_observations_lesson_unique on mem_observations (lesson_id) where lesson_id is not null;
