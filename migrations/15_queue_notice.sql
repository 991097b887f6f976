-- A notice of new jobs says of which kind they are. Without that every commit woke the workers of every kind, and each looked at the
-- queue for nothing.

create or replace function mem_notify_observation_queue() returns trigger language plpgsql as $$
begin
    perform pg_notify('mem_observation_queue', kind) from (select distinct kind from added) as kinds;
    return null;
end
$$;

drop trigger mem_observation_queue_inserted on mem_observation_queue;

create trigger mem_observation_queue_inserted after insert on mem_observation_queue
    referencing new table as added
    for each statement execute function mem_notify_observation_queue();
