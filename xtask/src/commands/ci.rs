//! `ci`: what continuous integration runs, in the order of what fails fastest.

use std::time::Instant;

use anyhow::{Context, Result};
use xshell::{Shell, cmd};

use super::test::ENGINES;
use crate::cli::{CiArgs, PrepareArgs, TestArgs};
use crate::output::{HintExt, Printer, human_duration};
use crate::repository::{Repository, as_a_person};

pub(super) async fn run(arguments: &CiArgs, printer: &Printer) -> Result<()> {
    let started = Instant::now();
    let engines = !arguments.no_engines;
    let checks: fn(&Shell, &Printer) -> Result<()> = if engines { check_with_engines } else { check_without_database };
    in_background(printer, checks).await?;
    printer.note("Checking that .sqlx is fresh");
    super::prepare::run(&PrepareArgs { check: true }, printer).await?;
    super::test::run(&TestArgs { engines, arguments: Vec::new() }, printer).await?;
    printer.note(format_args!("All checks passed in {}", human_duration(started.elapsed())));
    Ok(())
}

/// Runs commands in the checkout, while signals are still heard.
async fn in_background(printer: &Printer, commands: fn(&Shell, &Printer) -> Result<()>) -> Result<()> {
    let root = Repository::locate()?.root().to_owned();
    let printer = printer.clone();
    let run = move || {
        let shell = Shell::new().context("cannot start processes here")?;
        shell.change_dir(root);
        shell.set_var("SQLX_OFFLINE", "true");
        commands(&shell, &printer)
    };
    tokio::task::spawn_blocking(run).await.context("the checks were interrupted")?
}

fn check_without_database(shell: &Shell, printer: &Printer) -> Result<()> {
    printer.note("Checking the format");
    cmd!(shell, "cargo fmt --all --check")
        .quiet()
        .run()
        .context("the code is not formatted")
        .hint("run `cargo fmt --all`")?;
    printer.note("Checking lints");
    as_a_person(cmd!(shell, "cargo clippy --workspace --all-targets --locked -- -D warnings"))
        .quiet()
        .run()
        .context("clippy has complaints; they are above")?;
    printer.note("Checking the documentation");
    {
        let _flags = shell.push_env("RUSTDOCFLAGS", "-D warnings");
        as_a_person(cmd!(shell, "cargo doc --workspace --no-deps --locked"))
            .quiet()
            .run()
            .context("rustdoc has complaints; they are above")?;
    }
    if cmd!(shell, "cargo deny --version").quiet().ignore_stdout().ignore_stderr().run().is_err() {
        printer.note("Licences and advisories: not checked, cargo-deny is not installed");
        return Ok(());
    }
    printer.note("Checking licences and sources");
    cmd!(shell, "cargo deny --all-features check bans licenses sources")
        .quiet()
        .run()
        .context("cargo deny has complaints; they are above")
}

/// The same, and what only programs with mistralrs have.
fn check_with_engines(shell: &Shell, printer: &Printer) -> Result<()> {
    check_without_database(shell, printer)?;
    printer.note("Checking lints of what is compiled with mistralrs");
    as_a_person(cmd!(shell, "cargo clippy --workspace --all-targets --features {ENGINES} --locked -- -D warnings"))
        .quiet()
        .run()
        .context("clippy has complaints about what is compiled with mistralrs; they are above")
}
