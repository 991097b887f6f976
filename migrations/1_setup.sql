-- Meaning is searched with pgvector, so the extension comes before every table. On a managed Postgres the role may lack
-- the right to create it; then an administrator creates it once and this line finds it there.
create extension if not exists vector;
