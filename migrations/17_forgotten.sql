-- What a person or an agent had removed for good. Its key stays, so that neither the spool nor the agent's own transcript, which is
-- read again when the session ends, brings it back. Where an agent gives no ids, the hook and the transcript name the same thing by
-- different keys: then a digest of what was said stands beside the key.

create table mem_forgotten (
    session_id bigint not null
        constraint mem_forgotten_session_fkey references mem_sessions (id) on delete cascade,
    kind text not null,
    key text not null,
    digest bytea,
    forgotten_at timestamptz not null default now(),
    constraint mem_forgotten_pkey primary key (session_id, kind, key),
    constraint mem_forgotten_kind_known check (kind in ('prompt', 'call'))
);

create function mem_digest(said text) returns bytea language sql immutable parallel safe as $$
    select sha256(convert_to(said, 'UTF8'))
$$;

create function mem_refuse_forgotten_prompt() returns trigger language plpgsql as $$
begin
    if exists (
        select from mem_forgotten
        where session_id = new.session_id and kind = 'prompt'
          and (key = new.prompt_id or digest = mem_digest(new.prompt))
    ) then
        return null;
    end if;
    return new;
end
$$;

create trigger mem_user_prompts_not_forgotten before insert on mem_user_prompts
    for each row execute function mem_refuse_forgotten_prompt();

create function mem_refuse_forgotten_call() returns trigger language plpgsql as $$
begin
    if exists (
        select from mem_forgotten
        where session_id = new.session_id and kind = 'call'
          and (key = new.tool_use_id or digest = mem_digest(new.tool_name || ' ' || new.input::text))
    ) then
        return null;
    end if;
    return new;
end
$$;

create trigger mem_tool_calls_not_forgotten before insert on mem_tool_calls
    for each row execute function mem_refuse_forgotten_call();
