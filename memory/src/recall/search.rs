//! The search itself: both lists, fused, as lines of an index.

use super::{Filter, Fused, Line, RecallError, details, fuse, lists};
use crate::embed::QueryVector;
use crate::store::Db;

/// More lines than this are no index any more.
pub const MAX_LIMIT: usize = 100;

#[derive(Debug, Clone)]
pub struct SearchRequest {
    pub query: String,
    /// The query's vector; without one the search goes by words alone.
    pub vector: Option<QueryVector>,
    pub filter: Filter,
    /// How many hits at most, 1 to [`MAX_LIMIT`].
    pub limit: usize,
}

/// One hit: its line, and which list ranked it where.
#[derive(Debug, Clone, PartialEq)]
pub struct Hit {
    pub line: Line,
    pub fused: Fused,
}

/// Searches; best hit first. An empty answer means that nothing matched: every failure is an error.
pub async fn search(db: &Db, request: SearchRequest) -> Result<Vec<Hit>, RecallError> {
    let query = request.query.trim();
    if query.is_empty() {
        return Err(RecallError::EmptyQuery);
    }
    let mut connection = db.acquire().await?;
    let mut ranked = vec![lists::by_words(&mut connection, query, &request.filter).await?];
    if let Some(vector) = request.vector {
        ranked.push(lists::by_meaning(&mut connection, vector, &request.filter).await?);
    }
    let mut fused = fuse(&ranked);
    fused.truncate(request.limit.clamp(1, MAX_LIMIT));

    let ids: Vec<_> = fused.iter().map(|fused| fused.id).collect();
    let mut lines = details::lines(&mut connection, &ids).await?;
    // A document that was deleted between the two statements has no line any more.
    Ok(fused
        .into_iter()
        .filter_map(|fused| {
            let at = lines.iter().position(|line| line.id == fused.id)?;
            Some(Hit { line: lines.swap_remove(at), fused })
        })
        .collect())
}
