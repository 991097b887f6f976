-- Ranking by words (BM25) asks how long a document is, how long documents are on the average, and how many of them hold a lexeme.
-- The first stands with the document. The others are counted from time to time and not with every write: a row a lexeme that each
-- transaction raises would have all writers wait for each other, and a rank does not change for a few documents more.
--
-- Lexemes are made by the program now, not by to_tsvector: rows of another analysis are made again, and say which they have.

alter table mem_search_index
    drop column lexemes_in_context,
    add column length integer not null default 0,
    add column analysis smallint not null default 0;

create index mem_search_index_analysis_idx on mem_search_index (analysis);

-- What stood around a document in its session.
drop index mem_search_index_session_occurred_idx;
create index mem_search_index_session_order_idx
    on mem_search_index (session_id, occurred_at, document_kind, document_id);

create table mem_lexemes (
    lexeme text constraint mem_lexemes_pkey primary key,
    documents bigint not null
);

create table mem_search_statistics (
    singleton boolean not null default true constraint mem_search_statistics_pkey primary key,
    documents bigint not null,
    average_length double precision not null,
    counted_at timestamptz not null default now(),
    constraint mem_search_statistics_is_one_row check (singleton)
);

insert into mem_search_statistics (documents, average_length) values (0, 0);
