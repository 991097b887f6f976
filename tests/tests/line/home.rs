//! The hook finds its home by its own copy of the rule; here it is held to `memory::home`, by looking where it spools.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use memory::home::{Home, Platform, Surroundings};
use tests::conversation::Conversation;
use tests::hook::{self, Invocation};
use tests::programs;

/// Where the program lies: nowhere in particular, or in the `bin` folder of something.
#[derive(Clone, Copy)]
enum Lies {
    Elsewhere,
    InBin,
    InBinBesideToken,
}

#[tokio::test]
async fn the_hook_finds_the_home_that_every_other_program_finds() -> Result<()> {
    let named = ("AGENT_MEMORY_HOME", "named");
    let data = ("XDG_DATA_HOME", "data");
    let user = ("HOME", "user");
    let profile = ("USERPROFILE", "profile");
    for lies in [Lies::Elsewhere, Lies::InBin, Lies::InBinBesideToken] {
        check(lies, &[named, data, user]).await?;
        check(lies, &[data, user]).await?;
        check(lies, &[user]).await?;
        check(lies, &[user, profile]).await?;
        check(lies, &[profile]).await?;
        check(lies, &[("AGENT_MEMORY_HOME", ""), ("XDG_DATA_HOME", ""), user]).await?;
    }
    Ok(())
}

#[tokio::test]
async fn a_hook_without_any_home_ends_well_and_writes_nothing() -> Result<()> {
    let sandbox = tempfile::tempdir()?;
    let outcome = hook::run(Invocation {
        event: "Stop".to_owned(),
        stdin: Conversation::new(sandbox.path()).stops("Done").json(),
        folder: Some(sandbox.path().to_owned()),
        ..Invocation::default()
    })
    .await?;
    assert!(outcome.status.success());
    assert_eq!((outcome.stdout.as_str(), outcome.stderr.as_str()), ("", ""));
    assert_eq!(spool_folders(sandbox.path())?, [] as [PathBuf; 0]);
    Ok(())
}

/// Runs the hook in such surroundings, without a server, and looks for the event.
async fn check(lies: Lies, variables: &[(&'static str, &str)]) -> Result<()> {
    let sandbox = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR"))?;
    // Links in the way to the folder for temporary files would make two names of one place.
    let root = sandbox.path().canonicalize()?;
    let program = place_program(&root, lies).await?;
    let environment: Vec<(&'static str, OsString)> =
        variables.iter().map(|(name, value)| (*name, in_sandbox(&root, value))).collect();
    let home = Home::locate_in(&surroundings(&environment, &program), Platform::current())?;
    // A home without an address would send the hook to a real server's port.
    std::fs::create_dir_all(home.root())?;
    std::fs::write(home.address_file(), "127.0.0.1:9\n")?;

    let event = Conversation::new(&root).stops("Done");
    let invocation = Invocation {
        program: Some(program),
        agent: None,
        event: event.name.clone(),
        stdin: event.json(),
        environment: environment.clone(),
        folder: Some(root.clone()),
    };
    assert!(hook::run(invocation).await?.status.success());
    assert_eq!(spool_folders(&root)?, [home.spool()], "{environment:?}");
    Ok(())
}

async fn place_program(root: &Path, lies: Lies) -> Result<PathBuf> {
    let installation = root.join("installation");
    let folder = installation.join(if matches!(lies, Lies::Elsewhere) { "programs" } else { "bin" });
    std::fs::create_dir_all(&folder)?;
    let program = folder.join("agent-memory-hook");
    programs::place(&programs::hook().await?, &program)?;
    if matches!(lies, Lies::InBinBesideToken) {
        std::fs::write(installation.join("token"), "token\n")?;
    }
    Ok(program)
}

fn in_sandbox(root: &Path, value: &str) -> OsString {
    if value.is_empty() { OsString::new() } else { root.join(value).into() }
}

fn surroundings(environment: &[(&'static str, OsString)], program: &Path) -> Surroundings {
    let variable = |name: &str| {
        let found = environment.iter().find(|(other, _)| *other == name).map(|(_, value)| value.clone());
        found.filter(|value| !value.is_empty())
    };
    Surroundings {
        agent_memory_home: variable("AGENT_MEMORY_HOME"),
        program: Some(program.to_owned()),
        xdg_data_home: variable("XDG_DATA_HOME"),
        home: variable("HOME").or_else(|| variable("USERPROFILE")),
        local_app_data: variable("LOCALAPPDATA"),
    }
}

/// Every folder below that holds a spooled event.
fn spool_folders(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let mut open = vec![folder.to_owned()];
    while let Some(folder) = open.pop() {
        for entry in std::fs::read_dir(&folder).with_context(|| format!("listing `{}`", folder.display()))? {
            let path = entry?.path();
            if path.is_dir() {
                open.push(path);
            } else if path.extension().is_some_and(|extension| extension == "json") {
                found.push(folder.clone());
            }
        }
    }
    Ok(found)
}
