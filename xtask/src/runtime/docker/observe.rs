//! Looking at a stack: which service is how, and what it says.

use anyhow::Result;
use bollard::query_parameters::LogsOptionsBuilder;
use futures_util::{StreamExt, stream};
use memory::home::Home;

use super::engine::{Engine, EngineContext, if_there};
use super::health::{Progress, progress};
use super::project;
use super::teardown::{Member, members};
use crate::cli::Service;
use crate::output::{Printer, hinted};
use crate::runtime::{LogRequest, ServiceState, ServiceStatus, readable};

/// Both services, also where there is no container.
pub(crate) async fn state(engine: &Engine, home: &Home) -> Result<Vec<ServiceState>> {
    let project = project::of(engine, home).await?;
    let members = members(engine, &project).await?;
    let mut states = Vec::new();
    for (service, name) in [(super::DATABASE, "postgres"), (super::SERVER, "server")] {
        let member = members.iter().find(|member| member.service == service);
        states.push(match member {
            Some(member) => look_at(engine, member, name).await?,
            None => ServiceState { name, status: ServiceStatus::Stopped, detail: "no container".to_owned() },
        });
    }
    Ok(states)
}

async fn look_at(engine: &Engine, member: &Member, name: &'static str) -> Result<ServiceState> {
    let container = &member.container;
    let found =
        if_there(engine.docker.inspect_container(container, None).await).doing(format!("look at {container}"))?;
    let state = found.and_then(|found| found.state).unwrap_or_default();
    let (status, how) = match progress(&state, 0) {
        Progress::Healthy => (ServiceStatus::Running, "healthy".to_owned()),
        Progress::Starting => (ServiceStatus::Unhealthy, "starting".to_owned()),
        Progress::Failed(reason) if state.running == Some(true) => (ServiceStatus::Unhealthy, reason),
        Progress::Failed(reason) => (ServiceStatus::Stopped, reason),
    };
    Ok(ServiceState { name, status, detail: format!("container {container}, {how}") })
}

/// Prints the last lines, and with `follow` what comes until the operator ends it.
pub(crate) async fn logs(engine: &Engine, home: &Home, printer: &Printer, request: LogRequest) -> Result<()> {
    let project = project::of(engine, home).await?;
    let members = members(engine, &project).await?;
    let wanted: Vec<&Member> = members.iter().filter(|member| is_wanted(request.service, &member.service)).collect();
    if wanted.is_empty() {
        return Err(hinted(anyhow::anyhow!("there is no container to read from"), "run `cargo xtask up`"));
    }
    let options = LogsOptionsBuilder::default()
        .stdout(true)
        .stderr(true)
        .follow(request.follow)
        .tail(&request.lines.to_string())
        .build();
    let several = wanted.len() > 1;
    let streams = wanted.into_iter().map(|member| {
        let label = if several { format!("{} | ", shown_name(&member.service)) } else { String::new() };
        engine.docker.logs(&member.container, Some(options.clone())).map(move |piece| (label.clone(), piece)).boxed()
    });
    let mut lines = stream::select_all(streams);
    while let Some((label, piece)) = lines.next().await {
        let text = piece.doing("read the logs")?.to_string();
        printer.data(format_args!("{label}{}", readable(text.trim_end())));
    }
    Ok(())
}

fn is_wanted(wanted: Option<Service>, service: &str) -> bool {
    match wanted {
        None => true,
        Some(Service::Server) => service == super::SERVER,
        Some(Service::Postgres) => service == super::DATABASE,
    }
}

/// The operator knows the database as `postgres`, in every runtime.
fn shown_name(service: &str) -> &str {
    if service == super::DATABASE { "postgres" } else { service }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn picks_the_service_that_was_asked_for() {
        assert!(is_wanted(None, "server") && is_wanted(None, "database"));
        assert!(is_wanted(Some(Service::Postgres), "database"));
        assert!(!is_wanted(Some(Service::Server), "database"));
    }
}
