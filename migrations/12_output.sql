-- Outputs that are larger than their preview, each stored once however many calls gave it: the same file read ten times, the same
-- test log. They are the first to go when space is wanted; the call and its preview stay.

create table mem_outputs (
    content_hash bytea constraint mem_outputs_pkey primary key,
    body text not null,
    size_bytes bigint not null,
    recorded_at timestamptz not null default now()
);

create index mem_outputs_recorded_idx on mem_outputs (recorded_at);

alter table mem_tool_calls
    add column output_hash bytea
        constraint mem_tool_calls_output_fkey references mem_outputs (content_hash) on delete set null;

create index mem_tool_calls_output_idx on mem_tool_calls (output_hash) where output_hash is not null;
