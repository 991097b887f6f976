-- What can be found: one row a document (a prompt, a tool call, a note). It is derived from the journal and can be rebuilt
-- from it, so no text is kept here twice. `lexemes` serves words, `embedding` serves meaning; a row without a vector is
-- still found by its words. Vectors know their model, because those of two models must never be compared; shorter ones are
-- padded with zeros to 768, which leaves cosine distances as they are.

create table mem_embedding_models (
    id integer generated always as identity constraint mem_embedding_models_pkey primary key,
    name text not null constraint mem_embedding_models_name_unique unique,
    dimensions integer not null,
    created_at timestamptz not null default now(),
    constraint mem_embedding_models_dimensions_fit check (dimensions between 1 and 768)
);

create table mem_search_index (
    document_kind text not null,
    document_id bigint not null,
    project_id bigint constraint mem_search_index_project_fkey references mem_projects (id) on delete cascade,
    session_id bigint constraint mem_search_index_session_fkey references mem_sessions (id) on delete cascade,
    occurred_at timestamptz not null,
    lexemes tsvector not null,
    lexemes_in_context tsvector,
    -- Raised with every change of the text, so that a vector of the old text is never written over the new one's place.
    revision integer not null default 0,
    embedding vector(768),
    embedding_model_id integer
        constraint mem_search_index_embedding_model_fkey references mem_embedding_models (id),
    constraint mem_search_index_pkey primary key (document_kind, document_id),
    constraint mem_search_index_kind_known check (document_kind in ('prompt', 'call', 'note')),
    constraint mem_search_index_vector_has_model check ((embedding is null) = (embedding_model_id is null))
);

create index mem_search_index_lexemes_idx on mem_search_index using gin (lexemes);
create index mem_search_index_embedding_idx on mem_search_index using hnsw (embedding vector_cosine_ops);
create index mem_search_index_project_occurred_idx on mem_search_index (project_id, occurred_at desc);
create index mem_search_index_session_occurred_idx on mem_search_index (session_id, occurred_at);
