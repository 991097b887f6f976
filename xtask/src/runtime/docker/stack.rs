//! Bringing the stack up: network, volume, then each service after those it needs. What is as described is left alone,
//! what differs is made anew, and what a failed call has made is taken away again.

use std::path::PathBuf;

use anyhow::{Context, Result};
use bollard::models::{ContainerInspectResponse, NetworkCreateRequest, VolumeCreateRequest};
use bollard::query_parameters::{CreateContainerOptionsBuilder, RemoveContainerOptionsBuilder};

use super::description::Description;
use super::engine::{Engine, EngineContext, if_there};
use super::mapping::{Blueprint, CONFIG_LABEL, labels, qualified};
use super::secrets::Secrets;
use super::{DATABASE, Extent, health, images, ports};
use crate::files;
use crate::output::{HintExt, Printer};

/// Everything that is decided before the engine is asked for anything.
#[derive(Debug)]
pub(crate) struct Plan<'a> {
    pub engine: &'a Engine,
    pub printer: &'a Printer,
    pub description: Description,
    pub secrets: Secrets,
    /// The home's absolute path, for labels.
    pub home_path: String,
    pub server_port: u16,
    pub extent: Extent,
}

/// What a call has made, so that it can be taken away.
#[derive(Debug, Default)]
pub(crate) struct Made {
    containers: Vec<String>,
    networks: Vec<String>,
    volumes: Vec<String>,
    files: Vec<(PathBuf, Option<String>)>,
}

impl Made {
    pub(crate) fn made_volume(&self) -> bool {
        !self.volumes.is_empty()
    }

    /// Writes a private file and remembers what was there.
    pub(crate) fn write_file(&mut self, path: PathBuf, text: &str) -> Result<()> {
        let before = files::read_if_there(&path)?;
        if before.as_deref() != Some(text) {
            files::write_private(&path, text)?;
            self.files.push((path, before));
        }
        Ok(())
    }

    /// Takes everything away as far as that is possible; the failure that led here is the one to tell.
    pub(crate) async fn undo(self, engine: &Engine) {
        for container in self.containers.iter().rev() {
            let options = RemoveContainerOptionsBuilder::default().force(true).build();
            drop(engine.docker.remove_container(container, Some(options)).await);
        }
        for network in &self.networks {
            drop(engine.docker.remove_network(network).await);
        }
        for volume in &self.volumes {
            drop(engine.docker.remove_volume(volume, None::<bollard::query_parameters::RemoveVolumeOptions>).await);
        }
        for (path, before) in self.files {
            match before {
                Some(text) => drop(files::write_private(&path, &text)),
                None => drop(files::remove(&path)),
            }
        }
    }
}

/// Makes the engine hold what the plan says.
pub(crate) async fn raise(plan: &Plan<'_>, made: &mut Made) -> Result<()> {
    let project = &plan.description.name;
    for name in plan.description.networks.keys() {
        ensure_network(plan, &qualified(project, name), name, made).await?;
    }
    for name in plan.description.volumes.keys() {
        ensure_volume(plan, &qualified(project, name), name, made).await?;
    }
    for service_name in plan.description.start_order() {
        if plan.extent == Extent::Database && service_name != DATABASE {
            continue;
        }
        ensure_service(plan, service_name, made).await?;
    }
    Ok(())
}

async fn ensure_network(plan: &Plan<'_>, network: &str, name: &str, made: &mut Made) -> Result<()> {
    let docker = &plan.engine.docker;
    let doing = || format!("make the network {network}");
    if if_there(docker.inspect_network(network, None).await).doing(doing())?.is_some() {
        return Ok(());
    }
    let mut labels = labels(&plan.description.name, &plan.home_path);
    labels.insert("com.docker.compose.network".to_owned(), name.to_owned());
    let request = NetworkCreateRequest { name: network.to_owned(), labels: Some(labels), ..Default::default() };
    docker.create_network(request).await.doing(doing())?;
    made.networks.push(network.to_owned());
    Ok(())
}

async fn ensure_volume(plan: &Plan<'_>, volume: &str, name: &str, made: &mut Made) -> Result<()> {
    let docker = &plan.engine.docker;
    let doing = || format!("make the volume {volume}");
    if if_there(docker.inspect_volume(volume).await).doing(doing())?.is_some() {
        return Ok(());
    }
    let mut labels = labels(&plan.description.name, &plan.home_path);
    labels.insert("com.docker.compose.volume".to_owned(), name.to_owned());
    let request = VolumeCreateRequest { name: Some(volume.to_owned()), labels: Some(labels), ..Default::default() };
    docker.create_volume(request).await.doing(doing())?;
    made.volumes.push(volume.to_owned());
    Ok(())
}

async fn ensure_service(plan: &Plan<'_>, service_name: &str, made: &mut Made) -> Result<()> {
    let service = &plan.description.services[service_name];
    let image_id = images::image_id(plan.engine, &service.image)
        .await?
        .with_context(|| format!("the image {} is gone", service.image))
        .hint("run `cargo xtask up`; it makes the images anew")?;
    let blueprint = Blueprint {
        description: &plan.description,
        service_name,
        image_id: &image_id,
        secrets_digest: &plan.secrets.digest_for(service),
        home: &plan.home_path,
    };
    let container = blueprint.container_name();
    let what = format!("the {service_name}'s container");
    let existing = if_there(plan.engine.docker.inspect_container(&container, None).await);
    let existing = existing.doing(format!("look for {what}"))?;
    let step = plan.printer.step(format!("Starting {what}"));
    let as_described = existing.filter(|existing| config_of(existing) == blueprint.config_digest().ok());
    if let Some(existing) = as_described {
        let runs = existing.state.as_ref().and_then(|state| state.running) == Some(true);
        if !runs {
            start(plan, service_name, &container).await?;
        }
        health::wait(plan.engine, &container, &what, existing.restart_count.unwrap_or_default()).await?;
        if runs {
            step.skip();
        } else {
            step.done(format!("Started {what}"));
        }
        return Ok(());
    }
    remove(plan.engine, &container).await?;
    let options = CreateContainerOptionsBuilder::default().name(&container).build();
    let body = blueprint.container()?;
    plan.engine.docker.create_container(Some(options), body).await.doing(format!("make {what}"))?;
    made.containers.push(container.clone());
    start(plan, service_name, &container).await?;
    health::wait(plan.engine, &container, &what, 0).await?;
    if service_name == DATABASE && made.volumes.is_empty() {
        health::set_database_password(plan.engine, &container).await?;
    }
    step.done(format!("Made and started {what} ({container})"));
    Ok(())
}

async fn start(plan: &Plan<'_>, service_name: &str, container: &str) -> Result<()> {
    if service_name == super::SERVER {
        ports::require_free(plan.server_port)?;
    }
    let started = plan.engine.docker.start_container(container, None).await;
    let taken = matches!(&started, Err(error) if is_port_taken(&error.to_string()));
    let started = started.doing(format!("start the {service_name}'s container"));
    if taken {
        return started
            .context("a port on 127.0.0.1 is taken")
            .hint("stop the program that listens there; for the server's: `cargo xtask up --port <port>`");
    }
    started
}

/// Stops a container with its own grace period and removes it, if it is there.
pub(crate) async fn remove(engine: &Engine, container: &str) -> Result<bool> {
    let stopped = engine.docker.stop_container(container, None).await;
    if if_there(stopped).doing(format!("stop {container}"))?.is_none() {
        return Ok(false);
    }
    if_there(engine.docker.remove_container(container, None).await).doing(format!("remove {container}"))?;
    Ok(true)
}

fn config_of(container: &ContainerInspectResponse) -> Option<String> {
    container.config.as_ref()?.labels.as_ref()?.get(CONFIG_LABEL).cloned()
}

fn is_port_taken(message: &str) -> bool {
    message.contains("port is already allocated") || message.contains("address already in use")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn restores_the_files_of_a_call_that_failed() {
        let folder = tempfile::tempdir().unwrap();
        let (old, new) = (folder.path().join("old"), folder.path().join("new"));
        std::fs::write(&old, "before").unwrap();
        let mut made = Made::default();
        made.write_file(old.clone(), "after").unwrap();
        made.write_file(new.clone(), "after").unwrap();
        let docker = bollard::Docker::connect_with_http("127.0.0.1:9", 1, bollard::API_DEFAULT_VERSION).unwrap();
        let engine = Engine { docker, version: String::new(), architecture: String::new(), rootless: false };
        made.undo(&engine).await;
        assert_eq!(std::fs::read_to_string(old).unwrap(), "before");
        assert!(!new.exists());
    }

    #[test]
    fn knows_both_ways_in_which_an_engine_says_that_a_port_is_taken() {
        assert!(is_port_taken("Bind for 127.0.0.1:3378 failed: port is already allocated"));
        assert!(is_port_taken("listen tcp4 127.0.0.1:3378: bind: address already in use"));
        assert!(!is_port_taken("no such image"));
    }
}
