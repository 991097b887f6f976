//! What a table looks like, as its catalogue says: so that a new migration needs no new code here.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use sqlx::{AssertSqlSafe, PgConnection};

use super::super::StoreError;
use super::super::snapshot::{MIGRATIONS_TABLE, quoted, tables};

/// A table and how its rows are written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TableShape {
    pub table: String,
    pub columns: Vec<String>,
    /// The columns that rows are ordered by.
    pub key: Vec<String>,
    /// Where numbers go on: those of removed rows are not given again.
    pub next_id: Option<NextId>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NextId {
    pub column: String,
    pub value: i64,
}

impl TableShape {
    pub(super) fn select_lines(&self) -> String {
        let key: Vec<_> = self.key.iter().map(|column| format!("entry.{}", quoted(column))).collect();
        let order = if key.is_empty() { String::new() } else { format!(" order by {}", key.join(", ")) };
        format!("select row_to_json(entry)::text from {} entry{order}", quoted(&self.table))
    }
}

/// All tables but the list of migrations, each after those that it refers to.
pub(super) async fn shapes(connection: &mut PgConnection) -> Result<Vec<TableShape>, StoreError> {
    let mut shapes = Vec::new();
    for table in in_order(connection).await? {
        let columns: Vec<(String, bool)> = sqlx::query_as(
            "select attname::text, attidentity <> '' from pg_attribute
             where attrelid = $1::text::regclass and attnum > 0 and not attisdropped and attgenerated = '' order by attnum",
        )
        .bind(quoted(&table))
        .fetch_all(&mut *connection)
        .await?;
        let key = sqlx::query_scalar(
            "select attribute.attname::text
             from pg_index, unnest(indkey) with ordinality part (attnum, position)
             join pg_attribute attribute on attribute.attnum = part.attnum
             where indrelid = $1::text::regclass and indisprimary and attribute.attrelid = indrelid order by part.position",
        )
        .bind(quoted(&table))
        .fetch_all(&mut *connection)
        .await?;
        let numbered = columns.iter().find(|(_, is_identity)| *is_identity).map(|(column, _)| column.clone());
        let next_id = match numbered {
            Some(column) => Some(NextId { value: next_id(connection, &table, &column).await?, column }),
            None => None,
        };
        shapes.push(TableShape {
            columns: columns.into_iter().map(|(column, _)| column).collect(),
            key,
            next_id,
            table,
        });
    }
    Ok(shapes)
}

async fn next_id(connection: &mut PgConnection, table: &str, column: &str) -> Result<i64, StoreError> {
    let sequence: String = sqlx::query_scalar("select pg_get_serial_sequence($1, $2)")
        .bind(quoted(table))
        .bind(column)
        .fetch_one(&mut *connection)
        .await?;
    // The name comes quoted from the catalogue.
    let statement = format!("select case when is_called then last_value + 1 else last_value end from {sequence}");
    Ok(sqlx::query_scalar(AssertSqlSafe(statement)).fetch_one(connection).await?)
}

async fn in_order(connection: &mut PgConnection) -> Result<Vec<String>, StoreError> {
    let mut names = tables(connection).await?;
    names.retain(|table| table != MIGRATIONS_TABLE);
    let references: Vec<(String, String)> = sqlx::query_as(
        "select one.relname::text, other.relname::text
         from pg_constraint join pg_class one on one.oid = conrelid join pg_class other on other.oid = confrelid
         where contype = 'f' and conrelid <> confrelid and one.relnamespace = current_schema()::regnamespace",
    )
    .fetch_all(connection)
    .await?;
    Ok(sorted(&names, &references))
}

/// Each after those that it refers to, else by name. Tables that refer to each other in a ring come last.
fn sorted(names: &[String], references: &[(String, String)]) -> Vec<String> {
    let mut needs: BTreeMap<&str, BTreeSet<&str>> = names.iter().map(|name| (name.as_str(), BTreeSet::new())).collect();
    for (from, to) in references {
        if names.contains(to)
            && let Some(needed) = needs.get_mut(from.as_str())
        {
            needed.insert(to);
        }
    }
    let mut order: Vec<String> = Vec::new();
    while let Some(next) = needs.iter().find(|(_, needed)| needed.iter().all(|table| !needs.contains_key(table))) {
        let next = *next.0;
        order.push(next.to_owned());
        needs.remove(next);
    }
    order.extend(needs.keys().map(|name| (*name).to_owned()));
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_comes_after_those_that_it_refers_to() {
        let names = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
        let check = |references: &[(&str, &str)], expected: &str| {
            let references: Vec<_> =
                references.iter().map(|(one, other)| ((*one).to_owned(), (*other).to_owned())).collect();
            assert_eq!(sorted(&names("a b c d"), &references), names(expected));
        };
        check(&[], "a b c d");
        check(&[("a", "b"), ("b", "d")], "c d b a");
        check(&[("a", "elsewhere")], "a b c d");
        check(&[("a", "b"), ("b", "a")], "c d a b");
    }
}
