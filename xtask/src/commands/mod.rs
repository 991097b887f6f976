//! One file a command. A command reads its arguments, says what it does, and leaves the doing to `install`, `runtime`
//! and the other modules.

mod backfill;
mod backup;
mod bench;
mod ci;
mod consent;
mod doctor;
mod down;
mod export;
mod gc;
mod images;
mod import;
mod lessons;
mod logs;
mod migrate;
mod moving;
mod people;
mod prepare;
mod project;
mod queue;
mod re_embed;
mod register;
mod reindex;
mod removal;
mod restore;
mod schedule;
mod start;
mod status;
mod test;
mod token;
mod train;
mod uninstall;
mod up;

use anyhow::{Context, Result};
use memory::home::Home;

use crate::cli::Command;
use crate::output::Printer;

/// Runs a command to its end.
pub async fn run(command: Command, printer: &Printer) -> Result<()> {
    let home = Home::locate().context("cannot tell where the installation lies")?;
    // Other programs will be given these paths, and they run elsewhere.
    let root = std::path::absolute(home.root()).context("cannot tell where the installation lies")?;
    let home = Home::at(root);
    match command {
        Command::Up(arguments) => up::run(arguments, &home, printer).await,
        Command::Start => start::run(&home, printer).await,
        Command::Down(arguments) => down::run(arguments, &home, printer).await,
        Command::Status(arguments) => status::run(&arguments, &home, printer).await,
        Command::Doctor(arguments) => doctor::run(&arguments, &home, printer).await,
        Command::Logs(arguments) => logs::run(&arguments, &home, printer).await,
        Command::Gc(arguments) => gc::run(&arguments, &home, printer).await,
        Command::Queue(command) => queue::run(&command, &home, printer).await,
        Command::Reindex => reindex::run(&home, printer).await,
        Command::ReEmbed(arguments) => re_embed::run(&arguments, &home, printer).await,
        Command::Migrate => migrate::run(&home, printer).await,
        Command::Register(arguments) => register::register(&arguments, &home, printer),
        Command::Unregister(arguments) => register::unregister(&arguments, &home, printer),
        Command::Backfill(arguments) => backfill::run(&arguments, &home, printer).await,
        Command::Backup(arguments) => backup::run(arguments, &home, printer).await,
        Command::Restore(arguments) => restore::run(arguments, &home, printer).await,
        Command::Move(arguments) => moving::run(arguments, &home, printer).await,
        Command::Uninstall(arguments) => uninstall::run(arguments, &home, printer).await,
        Command::Schedule(command) => schedule::run(command, &home, printer).await,
        Command::Export(arguments) => export::run(&arguments, &home, printer).await,
        Command::Import(arguments) => import::run(&arguments, &home, printer).await,
        Command::Images => images::run(printer).await,
        Command::Project(command) => project::run(command, &home, printer).await,
        Command::People(arguments) => people::run(&arguments, &home, printer).await,
        Command::Token(command) => token::run(command, &home, printer).await,
        Command::Lessons(command) => lessons::run(command, &home, printer).await,
        Command::Test(arguments) => test::run(&arguments, printer).await,
        Command::Ci(arguments) => ci::run(&arguments, printer).await,
        Command::Prepare(arguments) => prepare::run(&arguments, printer).await,
        Command::Bench(command) => bench::run(&command, &home, printer).await,
        Command::Train(arguments) => train::run(&arguments, &home).await,
    }
}
