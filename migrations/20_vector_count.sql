-- After a change of the embedding model, or where there was none for a while, many documents have no vector of the present model and
-- are found by their words only. A search says so, and must not count them for it: the server does, from time to time.

alter table mem_search_statistics add column documents_without_vector bigint not null default 0;
