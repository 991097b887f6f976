//! `register` and `unregister`: interim.
use anyhow::Result;
use memory::home::Home;

use crate::cli::Agent;
use crate::output::Printer;

pub(super) fn register(_agent: Agent, _home: &Home, _printer: &Printer) -> Result<()> { anyhow::bail!("interim") }
pub(super) fn unregister(_agent: Agent, _home: &Home, _printer: &Printer) -> Result<()> { anyhow::bail!("interim") }
pub(super) fn register_found(_home: &Home, _printer: &Printer) -> Result<Vec<String>> { anyhow::bail!("interim") }
pub(super) fn unregister_quietly(_home: &Home, _printer: &Printer) -> Result<()> { anyhow::bail!("interim") }
pub(super) fn findings(_home: &Home) -> Vec<(String, bool)> { Vec::new() }
