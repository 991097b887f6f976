//! The server's image from before an upgrade: a tag of its own keeps it until the new one has proven that it runs.

use anyhow::Result;
use bollard::query_parameters::{RemoveImageOptions, TagImageOptionsBuilder};
use memory::home::Home;

use super::registry::{image_id, split};
use crate::runtime::docker::engine::{Engine, EngineContext, if_there};
use crate::runtime::docker::values::Values;

/// The tag of what ran before, in place of a version.
const FORMER: &str = "former";

/// Gives the installed image its second name; gives the first one. Nothing where there is none.
pub(crate) async fn keep(engine: &Engine, home: &Home) -> Result<Option<String>> {
    let Some(values) = Values::read(home)? else { return Ok(None) };
    let reference = values.images.server;
    if image_id(engine, &reference).await?.is_none() {
        return Ok(None);
    }
    tag(engine, &reference, &former(&reference)).await?;
    Ok(Some(reference))
}

/// Gives the image from before the name back that it had.
pub(crate) async fn put_back(engine: &Engine, home: &Home, reference: &str) -> Result<()> {
    let kept = former(reference);
    if image_id(engine, &kept).await?.is_some() {
        tag(engine, &kept, reference).await?;
        untag(engine, &kept).await?;
    }
    if let Some(values) = Values::read(home)?
        && values.images.server != reference
    {
        let newer = values.images.server.clone();
        values.with_server_image(reference).write(home)?;
        untag(engine, &newer).await?;
    }
    super::remove_replaced(engine).await
}

/// Removes what was kept, and the name of an older version.
pub(crate) async fn forget(engine: &Engine, home: &Home, reference: &str) -> Result<()> {
    untag(engine, &former(reference)).await?;
    if Values::read(home)?.is_some_and(|values| values.images.server != reference) {
        untag(engine, reference).await?;
    }
    Ok(())
}

/// `<name>:former` of `<name>:<version>`.
pub(crate) fn former(reference: &str) -> String {
    format!("{}:{FORMER}", split(reference).0)
}

async fn tag(engine: &Engine, from: &str, to: &str) -> Result<()> {
    let (name, tag) = split(to);
    let options = TagImageOptionsBuilder::default().repo(name).tag(tag).build();
    engine.docker.tag_image(from, Some(options)).await.doing(format!("give the image {from} the name {to}"))
}

/// Takes a name away; the image goes with its last one. One that a container uses stays until that is gone.
pub(crate) async fn untag(engine: &Engine, reference: &str) -> Result<()> {
    let options = RemoveImageOptions { noprune: false, ..Default::default() };
    let removed = if_there(engine.docker.remove_image(reference, Some(options), None).await);
    removed.doing(format!("remove the image {reference}")).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_is_named_after_what_it_was() {
        assert_eq!(former("agent-memory-0a1b2c3d-server:0.1.0"), "agent-memory-0a1b2c3d-server:former");
    }
}
