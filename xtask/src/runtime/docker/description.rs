//! compose.yaml as types: exactly the keys that we use. Any other key is an error that names it, so that nothing can be
//! written there which `docker compose` would do and `cargo xtask up` would not.

#![allow(clippy::zero_sized_map_values, reason = "the file's shape: a name, and so far nothing to say about it")]

use std::collections::BTreeMap;

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};
use yaml_serde::Value;

use super::interpolation::interpolate;

/// The file itself. It travels inside this program, which starts the stack after a reboot without the repository.
pub(crate) const COMPOSE_YAML: &str = include_str!("../../../../compose/compose.yaml");

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Description {
    pub name: String,
    pub services: BTreeMap<String, Service>,
    pub networks: BTreeMap<String, Plain>,
    pub volumes: BTreeMap<String, Plain>,
    pub secrets: BTreeMap<String, Secret>,
}

/// A network or a volume with nothing said about it.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Plain {}

/// A secret is a file on the host, seen by a container as `/run/secrets/<name>`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Secret {
    pub file: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Service {
    pub image: String,
    #[serde(default)]
    pub build: Option<Build>,
    pub user: String,
    #[serde(default)]
    pub command: Vec<String>,
    #[serde(default)]
    pub environment: BTreeMap<String, String>,
    #[serde(default)]
    pub secrets: Vec<String>,
    #[serde(default)]
    pub volumes: Vec<Volume>,
    #[serde(default)]
    pub tmpfs: Vec<String>,
    #[serde(default)]
    pub ports: Vec<String>,
    pub networks: Vec<String>,
    #[serde(default)]
    pub depends_on: BTreeMap<String, Dependency>,
    pub healthcheck: HealthCheck,
    pub restart: Restart,
    pub stop_signal: String,
    pub stop_grace_period: String,
    pub read_only: bool,
    pub cap_drop: Vec<String>,
    pub security_opt: Vec<String>,
    pub mem_limit: String,
    pub pids_limit: i64,
    #[serde(default)]
    pub shm_size: Option<String>,
    pub logging: Logging,
}

/// For `docker compose build`; `cargo xtask images` builds in its own way.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Build {
    pub context: String,
    pub dockerfile: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Volume {
    #[serde(rename = "type")]
    pub kind: VolumeKind,
    pub source: String,
    pub target: String,
    #[serde(default)]
    pub read_only: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum VolumeKind {
    Bind,
    Volume,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Dependency {
    pub condition: Condition,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Condition {
    ServiceHealthy,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct HealthCheck {
    pub test: Vec<String>,
    pub interval: String,
    pub timeout: String,
    pub retries: i64,
    pub start_period: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Restart {
    UnlessStopped,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Logging {
    pub driver: String,
    pub options: BTreeMap<String, String>,
}

impl Description {
    /// Our compose.yaml with these values in it.
    pub(crate) fn ours(variables: &BTreeMap<String, String>) -> Result<Self> {
        Self::parse(COMPOSE_YAML, variables)
    }

    pub(crate) fn parse(yaml: &str, variables: &BTreeMap<String, String>) -> Result<Self> {
        let mut document: Value = yaml_serde::from_str(yaml).context("compose.yaml is not YAML")?;
        leave_out_profiles(&mut document);
        // Values go in after parsing, as in Compose: a path with a quote or a backslash cannot break the syntax.
        complete(&mut document, variables)?;
        let mut description: Self =
            yaml_serde::from_value(document).context("compose.yaml holds what this program does not know")?;
        description.check_references()?;
        let used: Vec<_> =
            description.services.values().flat_map(|service| &service.volumes).map(|volume| &volume.source).collect();
        description.volumes.retain(|name, _| used.contains(&name));
        Ok(description)
    }

    /// The services' names, each after those that it depends on.
    pub(crate) fn start_order(&self) -> Vec<&str> {
        let mut order: Vec<&str> = Vec::with_capacity(self.services.len());
        while order.len() < self.services.len() {
            let before = order.len();
            for (name, service) in &self.services {
                let ready = service.depends_on.keys().all(|needed| order.contains(&needed.as_str()));
                if ready && !order.contains(&name.as_str()) {
                    order.push(name);
                }
            }
            assert!(order.len() > before, "check_references leaves no service that waits for itself");
        }
        order
    }

    fn check_references(&self) -> Result<()> {
        for (name, service) in &self.services {
            let volumes = service.volumes.iter().filter(|volume| volume.kind == VolumeKind::Volume);
            let unknown = (service.secrets.iter().find(|secret| !self.secrets.contains_key(*secret)))
                .or_else(|| service.networks.iter().find(|network| !self.networks.contains_key(*network)))
                .or_else(|| volumes.map(|volume| &volume.source).find(|source| !self.volumes.contains_key(*source)))
                .or_else(|| service.depends_on.keys().find(|needed| !self.services.contains_key(*needed)));
            if let Some(unknown) = unknown {
                anyhow::bail!("compose.yaml: service `{name}` names `{unknown}`, which is nowhere described");
            }
            // One step is enough for what we have; a chain would need a search.
            if service.depends_on.keys().any(|needed| !self.services[needed].depends_on.is_empty()) {
                anyhow::bail!("compose.yaml: service `{name}` depends on one that itself depends on another");
            }
        }
        Ok(())
    }
}

/// A service with a profile is for who asks Compose for it.
fn leave_out_profiles(document: &mut Value) {
    if let Some(Value::Mapping(services)) = document.get_mut("services") {
        services.retain(|_, service| service.get("profiles").is_none());
    }
}

fn complete(value: &mut Value, variables: &BTreeMap<String, String>) -> Result<()> {
    match value {
        Value::String(text) => *text = interpolate(text, variables).context("cannot complete compose.yaml")?,
        Value::Sequence(items) => items.iter_mut().try_for_each(|item| complete(item, variables))?,
        Value::Mapping(entries) => entries.iter_mut().try_for_each(|(_, item)| complete(item, variables))?,
        _ => {}
    }
    Ok(())
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// The values of an ordinary installation.
    pub(crate) fn variables() -> BTreeMap<String, String> {
        let values = [("AGENT_MEMORY_HOME", "/h"), ("AGENT_MEMORY_PORT", "4477"), ("AGENT_MEMORY_USER", "1000:1000")];
        values.map(|(name, value)| (name.to_owned(), value.to_owned())).into()
    }

    fn check_refused(yaml: &str, expected: &str) {
        let error = format!("{:#}", Description::parse(yaml, &variables()).unwrap_err());
        assert!(error.contains(expected), "{error}");
    }

    #[test]
    fn reads_our_own_file() {
        let description = Description::ours(&variables()).unwrap();
        assert_eq!(description.name, "agent-memory");
        assert_eq!(description.start_order(), ["database", "server"]);
        assert_eq!(description.services["server"].ports, ["127.0.0.1:4477:3377"]);
        assert_eq!(description.services["server"].volumes[0].source, "/h/spool");
        assert_eq!(description.secrets["token"].file, "/h/run/secrets/token");
    }

    #[test]
    fn leaves_out_what_has_a_profile_and_its_volumes() {
        assert!(COMPOSE_YAML.contains("profiles: [observe]") && COMPOSE_YAML.contains("\n  grafana: {}"));
        let description = Description::ours(&variables()).unwrap();
        assert_eq!(description.services.keys().collect::<Vec<_>>(), ["database", "server"]);
        assert_eq!(description.volumes.keys().collect::<Vec<_>>(), ["database"]);
    }

    #[test]
    fn refuses_an_unknown_key_by_its_name() {
        check_refused(
            &COMPOSE_YAML.replace("read_only: true\n    cap_drop", "privileged: true\n    cap_drop"),
            "privileged",
        );
        check_refused(&format!("{COMPOSE_YAML}\nconfigs: {{}}\n"), "configs");
        check_refused(&COMPOSE_YAML.replace("  private: {}", "  private: { external: true }"), "external");
    }

    #[test]
    fn refuses_a_secret_that_is_nowhere_described() {
        check_refused(
            &COMPOSE_YAML.replace("secrets: [token, hook-token, database-url]", "secrets: [tokens]"),
            "tokens",
        );
    }

    #[test]
    fn takes_a_path_with_quotes_and_backslashes_as_it_is() {
        let mut variables = variables();
        variables.insert("AGENT_MEMORY_HOME".to_owned(), r#"C:\my "home""#.to_owned());
        let description = Description::ours(&variables).unwrap();
        assert_eq!(description.services["server"].volumes[0].source, r#"C:\my "home"/spool"#);
    }

    #[test]
    fn asks_for_up_when_no_home_is_given() {
        let error = format!("{:#}", Description::ours(&BTreeMap::new()).unwrap_err());
        assert!(error.contains("cargo xtask up"), "{error}");
    }
}
