-- A lesson that holds in every project holds there for whoever wrote it: one person's must not speak to another's agents. That of a
-- project is that project's.

alter table mem_lessons add column person_id bigint constraint mem_lessons_person_fkey references mem_people (id);
