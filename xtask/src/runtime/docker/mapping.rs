//! From a service in compose.yaml to what the engine's API takes. Pure: it decides names, labels and settings and asks
//! nobody.

use std::collections::HashMap;

use anyhow::{Context, Result};
use bollard::models::{
    ContainerCreateBody, EndpointSettings, HealthConfig, HostConfig, HostConfigLogConfig, Mount, MountType,
    NetworkingConfig, PortBinding, RestartPolicy, RestartPolicyNameEnum,
};
use sha2::{Digest, Sha256};

use super::description::{Description, Restart, Service, Volume, VolumeKind};
use crate::files;

/// By these labels Compose knows what belongs to a project.
pub(crate) const PROJECT_LABEL: &str = "com.docker.compose.project";
pub(crate) const SERVICE_LABEL: &str = "com.docker.compose.service";
/// What a container was made from; another value means that it must be made again. Compose takes a container for its own
/// by this label, and makes ours anew, because it digests in another way.
pub(crate) const CONFIG_LABEL: &str = "com.docker.compose.config-hash";
/// Which home an object belongs to.
pub(crate) const HOME_LABEL: &str = "agent-memory.home";

/// What one container is made from.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Blueprint<'a> {
    pub description: &'a Description,
    pub service_name: &'a str,
    /// The id of the image that the service's tag stands for now.
    pub image_id: &'a str,
    /// A digest over the contents of the files that the container sees as secrets.
    pub secrets_digest: &'a str,
    pub home: &'a str,
}

impl Blueprint<'_> {
    /// As Compose would name it.
    pub(crate) fn container_name(&self) -> String {
        format!("{}-{}-1", self.description.name, self.service_name)
    }

    pub(crate) fn service(&self) -> &Service {
        &self.description.services[self.service_name]
    }

    /// Changes whenever the container would come out differently.
    pub(crate) fn config_digest(&self) -> Result<String> {
        let service = serde_json::to_string(self.service()).context("cannot write a service as JSON")?;
        let version = env!("CARGO_PKG_VERSION");
        let parts = [&self.description.name, &service, self.image_id, self.secrets_digest, self.home, version];
        Ok(digest(parts.map(str::as_bytes)))
    }

    pub(crate) fn container(&self) -> Result<ContainerCreateBody> {
        let service = self.service();
        let ports = service.ports.iter().map(|port| published_port(port)).collect::<Result<Vec<_>>>()?;
        let mut labels = labels(&self.description.name, self.home);
        labels.extend([
            (SERVICE_LABEL.to_owned(), self.service_name.to_owned()),
            ("com.docker.compose.container-number".to_owned(), "1".to_owned()),
            ("com.docker.compose.oneoff".to_owned(), "False".to_owned()),
            (CONFIG_LABEL.to_owned(), self.config_digest()?),
        ]);
        let endpoint = EndpointSettings { aliases: Some(vec![self.service_name.to_owned()]), ..Default::default() };
        let endpoints = service.networks.iter().map(|name| (self.qualified(name), endpoint.clone())).collect();
        Ok(ContainerCreateBody {
            image: Some(service.image.clone()),
            user: Some(service.user.clone()),
            cmd: Some(service.command.clone()).filter(|command| !command.is_empty()),
            env: Some(service.environment.iter().map(|(name, value)| format!("{name}={value}")).collect()),
            exposed_ports: Some(ports.iter().map(|(container, _)| container.clone()).collect()),
            healthcheck: Some(health_check(service)?),
            labels: Some(labels),
            stop_signal: Some(service.stop_signal.clone()),
            stop_timeout: Some(nanoseconds(&service.stop_grace_period)? / NANOSECONDS_PER_SECOND),
            host_config: Some(self.host_config(ports)?),
            networking_config: Some(NetworkingConfig { endpoints_config: Some(endpoints) }),
            ..Default::default()
        })
    }

    fn host_config(&self, ports: Vec<(String, PortBinding)>) -> Result<HostConfig> {
        let service = self.service();
        let mut mounts: Vec<Mount> = service.volumes.iter().map(|volume| self.mount(volume)).collect();
        mounts.extend(service.secrets.iter().map(|name| Mount {
            typ: Some(MountType::BIND),
            source: Some(self.description.secrets[name].file.clone()),
            target: Some(format!("/run/secrets/{name}")),
            read_only: Some(true),
            ..Default::default()
        }));
        let restart = match service.restart {
            Restart::UnlessStopped => RestartPolicyNameEnum::UNLESS_STOPPED,
        };
        let bindings = ports.into_iter().map(|(container, binding)| (container, Some(vec![binding]))).collect();
        Ok(HostConfig {
            mounts: Some(mounts),
            tmpfs: Some(service.tmpfs.iter().map(|entry| tmpfs(entry)).collect()),
            port_bindings: Some(bindings),
            network_mode: service.networks.first().map(|name| self.qualified(name)),
            restart_policy: Some(RestartPolicy { name: Some(restart), ..Default::default() }),
            readonly_rootfs: Some(service.read_only),
            cap_drop: Some(service.cap_drop.clone()),
            security_opt: Some(service.security_opt.clone()),
            memory: Some(bytes(&service.mem_limit)?),
            pids_limit: Some(service.pids_limit),
            shm_size: service.shm_size.as_deref().map(bytes).transpose()?,
            log_config: Some(HostConfigLogConfig {
                typ: Some(service.logging.driver.clone()),
                config: Some(service.logging.options.clone().into_iter().collect()),
            }),
            ..Default::default()
        })
    }

    fn mount(&self, volume: &Volume) -> Mount {
        let (typ, source) = match volume.kind {
            VolumeKind::Bind => (MountType::BIND, volume.source.clone()),
            VolumeKind::Volume => (MountType::VOLUME, self.qualified(&volume.source)),
        };
        Mount {
            typ: Some(typ),
            source: Some(source),
            target: Some(volume.target.clone()),
            read_only: Some(volume.read_only),
            ..Default::default()
        }
    }

    fn qualified(&self, name: &str) -> String {
        qualified(&self.description.name, name)
    }
}

/// The engine's name of a network or a volume, as Compose would name it.
pub(crate) fn qualified(project: &str, name: &str) -> String {
    format!("{project}_{name}")
}

/// The labels of whatever belongs to this project and home.
pub(crate) fn labels(project: &str, home: &str) -> HashMap<String, String> {
    [(PROJECT_LABEL, project), (HOME_LABEL, home)].map(|(name, value)| (name.to_owned(), value.to_owned())).into()
}

/// Sha256 in hex over parts that cannot run into each other.
pub(crate) fn digest<'a>(parts: impl IntoIterator<Item = &'a [u8]>) -> String {
    let mut hasher = Sha256::new();
    for part in parts {
        hasher.update((part.len() as u64).to_le_bytes());
        hasher.update(part);
    }
    files::hex(&hasher.finalize())
}

fn health_check(service: &Service) -> Result<HealthConfig> {
    let check = &service.healthcheck;
    Ok(HealthConfig {
        test: Some(check.test.clone()),
        interval: Some(nanoseconds(&check.interval)?),
        timeout: Some(nanoseconds(&check.timeout)?),
        retries: Some(check.retries),
        start_period: Some(nanoseconds(&check.start_period)?),
        start_interval: None,
    })
}

/// `127.0.0.1:3377:3377`; an address is required, so that no port is ever open to the network by omission.
fn published_port(text: &str) -> Result<(String, PortBinding)> {
    let parts: Vec<&str> = text.split(':').collect();
    let &[address, host_port, container_port] = parts.as_slice() else {
        anyhow::bail!("compose.yaml: port `{text}` is not address:port:port");
    };
    anyhow::ensure!(address == "127.0.0.1", "compose.yaml: port `{text}` is not bound to 127.0.0.1");
    let binding = PortBinding { host_ip: Some(address.to_owned()), host_port: Some(host_port.to_owned()) };
    Ok((format!("{container_port}/tcp"), binding))
}

fn tmpfs(entry: &str) -> (String, String) {
    let (target, options) = entry.split_once(':').unwrap_or((entry, ""));
    (target.to_owned(), options.to_owned())
}

const NANOSECONDS_PER_SECOND: i64 = 1_000_000_000;

fn nanoseconds(text: &str) -> Result<i64> {
    let seconds = text.strip_suffix('s').and_then(|number| number.parse::<i64>().ok());
    let seconds = seconds.with_context(|| format!("compose.yaml: `{text}` is not a number of seconds like `5s`"))?;
    Ok(seconds * NANOSECONDS_PER_SECOND)
}

fn bytes(text: &str) -> Result<i64> {
    let (number, factor) = match text.split_at(text.len() - usize::from(text.ends_with(['m', 'g']))) {
        (number, "g") => (number, 1 << 30),
        (number, "m") => (number, 1 << 20),
        (number, _) => (number, 1),
    };
    let number: i64 = number.parse().with_context(|| format!("compose.yaml: `{text}` is not a size like `512m`"))?;
    Ok(number * factor)
}

#[cfg(test)]
mod tests {
    use super::super::description::{COMPOSE_YAML, tests::variables};
    use super::*;

    fn container(service_name: &str) -> ContainerCreateBody {
        let description = Description::ours(&variables()).unwrap();
        let blueprint = blueprint(&description, service_name);
        blueprint.container().unwrap()
    }

    fn blueprint<'a>(description: &'a Description, service_name: &'a str) -> Blueprint<'a> {
        Blueprint { description, service_name, image_id: "sha256:1", secrets_digest: "2", home: "/h" }
    }

    #[test]
    fn hardens_every_container() {
        for (service, user) in [("database", "999:999"), ("server", "1000:1000")] {
            let body = container(service);
            let host = body.host_config.unwrap();
            assert_eq!(body.user.as_deref(), Some(user));
            assert_eq!(host.readonly_rootfs, Some(true));
            assert_eq!(host.cap_drop, Some(vec!["ALL".to_owned()]));
            assert_eq!(host.security_opt, Some(vec!["no-new-privileges:true".to_owned()]));
            assert_eq!(host.memory, Some(2 << 30));
            assert_eq!(host.pids_limit, Some(256));
            assert_eq!(host.restart_policy.unwrap().name, Some(RestartPolicyNameEnum::UNLESS_STOPPED));
            assert!(host.privileged.is_none() && host.cap_add.is_none());
        }
    }

    #[test]
    fn publishes_ports_on_loopback_only() {
        let host = container("server").host_config.unwrap();
        let binding = PortBinding { host_ip: Some("127.0.0.1".to_owned()), host_port: Some("4477".to_owned()) };
        assert_eq!(host.port_bindings, Some(HashMap::from([("3377/tcp".to_owned(), Some(vec![binding]))])));
        let open = COMPOSE_YAML.replace("127.0.0.1:${AGENT_MEMORY_PORT:-3377}", "0.0.0.0:3377");
        let description = Description::parse(&open, &variables()).unwrap();
        assert!(blueprint(&description, "server").container().is_err());
    }

    #[test]
    fn hands_secrets_over_as_files_and_never_in_the_environment() {
        let body = container("server");
        let mounts = body.host_config.unwrap().mounts.unwrap();
        let token = mounts.iter().find(|mount| mount.target.as_deref() == Some("/run/secrets/token")).unwrap();
        assert_eq!(token.source.as_deref(), Some("/h/run/secrets/token"));
        assert_eq!(token.read_only, Some(true));
        let told = [
            "AGENT_MEMORY_BEHIND_LOOPBACK=true",
            "AGENT_MEMORY_DISABLE=1",
            "AGENT_MEMORY_HOOK_TOKEN_FILE=/run/secrets/hook-token",
            "AGENT_MEMORY_LOG_FILE=-",
            "MALLOC_ARENA_MAX=2",
            "MALLOC_MMAP_THRESHOLD_=131072",
        ];
        assert_eq!(body.env.unwrap_or_default(), told);
        let database = container("database").env.unwrap();
        assert!(database.iter().all(|entry| !entry.starts_with("POSTGRES_PASSWORD=")), "{database:?}");
    }

    #[test]
    fn gives_the_server_the_spool_to_write_and_models_and_settings_to_read() {
        let mounts = container("server").host_config.unwrap().mounts.unwrap();
        let read_only =
            |target: &str| mounts.iter().find(|mount| mount.target.as_deref() == Some(target)).unwrap().read_only;
        assert_eq!((read_only("/spool"), read_only("/models")), (Some(false), Some(true)));
        assert_eq!(read_only("/config"), Some(true));
    }

    #[test]
    fn keeps_the_data_in_a_volume_named_as_compose_names_it() {
        let body = container("database");
        let host = body.host_config.unwrap();
        let volume = &host.mounts.unwrap()[0];
        assert_eq!((volume.typ, volume.source.as_deref()), (Some(MountType::VOLUME), Some("agent-memory_database")));
        assert_eq!(host.shm_size, Some(512 << 20));
        assert_eq!(body.stop_timeout, Some(60));
        assert_eq!(body.labels.unwrap()[SERVICE_LABEL], "database");
    }

    #[test]
    fn has_another_digest_for_another_image_secret_or_setting() {
        let description = Description::ours(&variables()).unwrap();
        let server = blueprint(&description, "server");
        let same = server.config_digest().unwrap();
        assert_eq!(blueprint(&description, "server").config_digest().unwrap(), same);
        assert_ne!(Blueprint { image_id: "sha256:2", ..server }.config_digest().unwrap(), same);
        assert_ne!(Blueprint { secrets_digest: "3", ..server }.config_digest().unwrap(), same);
        let mut variables = variables();
        variables.insert("AGENT_MEMORY_PORT".to_owned(), "4478".to_owned());
        let description = Description::ours(&variables).unwrap();
        assert_ne!(blueprint(&description, "server").config_digest().unwrap(), same);
    }

    #[test]
    fn reads_sizes_and_seconds() {
        assert_eq!(bytes("512m").unwrap(), 512 << 20);
        assert_eq!(bytes("2g").unwrap(), 2 << 30);
        assert_eq!(bytes("1024").unwrap(), 1024);
        assert_eq!(nanoseconds("5s").unwrap(), 5 * NANOSECONDS_PER_SECOND);
        assert!(bytes("much").is_err() && bytes("").is_err() && nanoseconds("5m").is_err());
    }
}
