//! The schema on a database that has none yet.

use anyhow::Result;
use tests::database::Database;
use tests::stack::Stack;
use tests::wait;

const SERVERS: usize = 4;

#[tokio::test]
async fn several_servers_that_start_at_once_on_an_empty_database_all_come_up() -> Result<()> {
    let owner = Stack::on(Database::empty().await?)?;
    let mut others = Vec::new();
    for _ in 1..SERVERS {
        let other = Stack::stopped().await?;
        std::fs::write(other.home().database_url_file(), owner.database().url())?;
        others.push(other);
    }
    let mut servers = Vec::new();
    for stack in std::iter::once(&owner).chain(&others) {
        servers.push(stack.spawn_server().await?);
    }
    let mut versions = Vec::new();
    for stack in std::iter::once(&owner).chain(&others) {
        let version = wait::until("a server with its database", async || {
            let health = stack.health().await.unwrap_or_default();
            Ok((health["database"]["state"] == "up").then(|| health["database"]["schema_version"].clone()))
        });
        versions.push(version.await.map_err(|error| error.context(stack.server_output()))?);
    }
    for server in &mut servers {
        assert_eq!(server.try_wait()?, None, "every server still runs");
    }
    assert!(versions[0].is_i64(), "{versions:?}");
    assert!(versions.iter().all(|version| *version == versions[0]), "{versions:?}");
    Ok(())
}
