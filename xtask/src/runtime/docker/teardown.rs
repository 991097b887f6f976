//! Taking the stack down: containers and network; with the data if that is asked for. Images stay.

use std::collections::HashMap;

use anyhow::Result;
use bollard::query_parameters::{
    ListContainersOptionsBuilder, ListImagesOptionsBuilder, ListVolumesOptionsBuilder, RemoveImageOptions,
    RemoveVolumeOptions,
};
use memory::home::Home;

use super::engine::{Engine, EngineContext, if_there};
use super::mapping::{HOME_LABEL, PROJECT_LABEL, SERVICE_LABEL, qualified};
use super::{Part, images, project, secrets, stack, values};
use crate::files;
use crate::output::Printer;

/// A container of the project, whatever its state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Member {
    pub service: String,
    pub container: String,
}

/// Stops and removes containers and network; says whether there was anything.
pub(crate) async fn down(engine: &Engine, home: &Home, printer: &Printer) -> Result<bool> {
    let project = project::of(engine, home).await?;
    let mut anything = false;
    for member in members(engine, &project).await? {
        let step = printer.step(format!("Stopping the {}'s container", member.service));
        anything |= stack::remove(engine, &member.container).await?;
        step.done(format!("Stopped and removed the {}'s container", member.service));
    }
    for network in super::networks(home)? {
        let removed = engine.docker.remove_network(&qualified(&project, &network)).await;
        anything |= if_there(removed).doing(format!("remove the network {network}"))?.is_some();
    }
    Ok(anything)
}

/// Stops the server's container, if it runs, with its own grace period.
pub(crate) async fn stop_server(engine: &Engine, home: &Home) -> Result<bool> {
    let project = project::of(engine, home).await?;
    let members = members(engine, &project).await?;
    let Some(server) = members.iter().find(|member| member.service == super::SERVER) else { return Ok(false) };
    let found = if_there(engine.docker.inspect_container(&server.container, None).await).doing("look at the server")?;
    if found.and_then(|found| found.state).is_none_or(|state| state.running != Some(true)) {
        return Ok(false);
    }
    engine.docker.stop_container(&server.container, None).await.doing("stop the server's container")?;
    Ok(true)
}

/// What `down` does, and then the data: every memory is gone. Images stay, but the server's of a home that is not the default goes.
pub(crate) async fn purge(engine: &Engine, home: &Home, printer: &Printer) -> Result<()> {
    let project = project::of(engine, home).await?;
    down(engine, home, printer).await?;
    for volume in super::volumes(home)? {
        let volume = qualified(&project, &volume);
        let removed = engine.docker.remove_volume(&volume, None::<RemoveVolumeOptions>).await;
        if if_there(removed).doing(format!("remove the volume {volume}"))?.is_some() {
            printer.note(format_args!("Removed the volume {volume} with all its data"));
        }
    }
    if project != values::DEFAULT_PROJECT {
        // Nobody else has a use for it, and after a purge no one remembers it.
        drop(engine.docker.remove_image(&images::server_reference(&project), None::<RemoveImageOptions>, None).await);
    }
    files::remove(&secrets::folder(home))?;
    files::remove(&values::file(home))?;
    Ok(())
}

/// Containers, networks and volumes of the project.
pub(crate) async fn left(engine: &Engine, home: &Home) -> Result<Vec<Part>> {
    let project = project::of(engine, home).await?;
    let mut left: Vec<_> = members(engine, &project)
        .await?
        .into_iter()
        .map(|member| Part { name: format!("the container {}", member.container), is_data: false })
        .collect();
    for network in super::networks(home)? {
        let network = qualified(&project, &network);
        if if_there(engine.docker.inspect_network(&network, None).await).doing("look for a network")?.is_some() {
            left.push(Part { name: format!("the network {network}"), is_data: false });
        }
    }
    for volume in super::volumes(home)? {
        let volume = qualified(&project, &volume);
        if if_there(engine.docker.inspect_volume(&volume).await).doing("look for a volume")?.is_some() {
            left.push(Part { name: format!("the volume {volume}"), is_data: true });
        }
    }
    Ok(left)
}

/// The server's images of this home, and those that all homes share if no other one has a volume here.
pub(crate) async fn own_images(engine: &Engine, home: &Home) -> Result<Vec<String>> {
    let project = project::of(engine, home).await?;
    let of_server = images::server_reference(&project);
    let name = images::name_of(&of_server).to_owned();
    let filters = HashMap::from([("reference".to_owned(), vec![name])]);
    let options = ListImagesOptionsBuilder::default().filters(&filters).build();
    let found = engine.docker.list_images(Some(options)).await.doing("list the images")?;
    let mut own: Vec<String> = found.into_iter().flat_map(|image| image.repo_tags).collect();
    let filters = HashMap::from([("label".to_owned(), vec![HOME_LABEL.to_owned()])]);
    let options = ListVolumesOptionsBuilder::default().filters(&filters).build();
    let volumes =
        engine.docker.list_volumes(Some(options)).await.doing("list the volumes")?.volumes.unwrap_or_default();
    let ours: Vec<_> = super::volumes(home)?.iter().map(|volume| qualified(&project, volume)).collect();
    if volumes.iter().all(|volume| ours.contains(&volume.name)) {
        own.extend(images::SHARED.map(str::to_owned));
    }
    Ok(own)
}

/// The project's containers, also those that Compose has made; the server before its database.
pub(crate) async fn members(engine: &Engine, project: &str) -> Result<Vec<Member>> {
    let filters = HashMap::from([("label".to_owned(), vec![format!("{PROJECT_LABEL}={project}")])]);
    let options = ListContainersOptionsBuilder::default().all(true).filters(&filters).build();
    let found = engine.docker.list_containers(Some(options)).await.doing("list the containers")?;
    let mut members: Vec<_> = found
        .into_iter()
        .filter_map(|container| {
            let service = container.labels.as_ref()?.get(SERVICE_LABEL)?.clone();
            let name = container.names?.into_iter().next()?;
            Some(Member { service, container: name.trim_start_matches('/').to_owned() })
        })
        .collect();
    members.sort_by_key(|member| member.service == super::DATABASE);
    Ok(members)
}
