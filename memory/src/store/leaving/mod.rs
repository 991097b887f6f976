//! Every row as a line of JSON, and back: what a person takes along when they leave, or moves elsewhere. Values are written as
//! Postgres writes them and read as it reads them, so that nothing is lost that a column can hold.
//!
//! Reading is one transaction: constraints are checked, indexes made and everything counted before anything of it is there. In which
//! files the lines stand is the operator's program's business.

mod load;
mod shape;

pub use load::{LoadError, Loading};
pub use shape::{NextId, TableShape};

use futures_util::stream::BoxStream;
use futures_util::{StreamExt, TryStreamExt};
use sqlx::AssertSqlSafe;

use super::StoreError;
use super::snapshot::{self, Snapshot};

impl Snapshot {
    /// The tables that are exported, each after those that it refers to.
    pub async fn shapes(&mut self) -> Result<Vec<TableShape>, StoreError> {
        snapshot::write_values_alike(self.connection()).await?;
        shape::shapes(self.connection()).await
    }

    /// The rows of a table, each a line of JSON, in the order of its key. Few of them are in memory at a time.
    pub fn lines(&mut self, shape: &TableShape) -> BoxStream<'_, Result<String, StoreError>> {
        let statement = AssertSqlSafe(shape.select_lines());
        sqlx::query_scalar(statement).fetch(self.connection()).map_err(StoreError::from).boxed()
    }
}
