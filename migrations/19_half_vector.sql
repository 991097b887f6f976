-- A vector at half precision takes half the room, in the table and twice in its index, and finds the same: `bench locomo` gives the
-- same recall (docs/benchmarks.md). pgvector has it since 0.7.

drop index mem_search_index_embedding_idx;

alter table mem_search_index alter column embedding type halfvec(768);

create index mem_search_index_embedding_idx on mem_search_index using hnsw (embedding halfvec_cosine_ops);
