//! Under which name a home's containers, network and volume stand in the engine.

use anyhow::Result;
use memory::home::Home;

use super::description::Description;
use super::engine::{Engine, EngineContext, if_there};
use super::mapping::{HOME_LABEL, qualified};
use super::values::{self, Values};

/// The name that the last `up` chose; else the first that no other home has.
pub(crate) async fn of(engine: &Engine, home: &Home) -> Result<String> {
    if let Some(values) = Values::read(home)? {
        return Ok(values.project);
    }
    let mut names = values::project_names(home)?;
    let own = names.pop().unwrap_or_else(|| values::DEFAULT_PROJECT.to_owned());
    for name in names {
        if !belongs_to_another(engine, &name, &values::absolute(home)?).await? {
            return Ok(name);
        }
    }
    Ok(own)
}

/// A project is its data: its volume outlives its containers and knows its home.
async fn belongs_to_another(engine: &Engine, project: &str, home_path: &str) -> Result<bool> {
    let volume = qualified(project, super::DATABASE);
    let found = if_there(engine.docker.inspect_volume(&volume).await).doing("look for data of another home")?;
    Ok(found.is_some_and(|volume| volume.labels.get(HOME_LABEL).map(String::as_str) != Some(home_path)))
}

impl Values {
    /// The description with these values in it.
    pub(crate) fn describe(&self) -> Result<Description> {
        Description::ours(&self.variables())
    }
}
