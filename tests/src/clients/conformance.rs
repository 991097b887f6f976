//! The conformance suite of the Model Context Protocol, as a client of the server's `/mcp`.

use std::path::Path;
use std::process::Stdio;

use anyhow::{Context, Result};
use tokio::sync::OnceCell;

use super::DEADLINE;
use super::npm::{Client, Package};
use crate::stack::Stack;

static PACKAGE: Package = Package {
    name: "MCP conformance",
    package: "@modelcontextprotocol/conformance",
    version: "0.1.16",
    program: "conformance",
    node: 22,
    found: OnceCell::const_new(),
};

/// What gives the suite the server's token; it must lie where the suite's own packages are found.
const TOKEN_MODULE: &str = include_str!("../../conformance/token.mjs");

/// An installed suite.
#[derive(Debug)]
pub struct Conformance(&'static Client);

/// How a run ended.
#[derive(Debug)]
pub struct Verdict {
    /// Whether exactly what the baseline lists failed.
    pub is_as_expected: bool,
    /// The suite's summary.
    pub summary: String,
}

impl Conformance {
    /// Nothing where there is none and none is required; the summary has the reason.
    pub async fn find() -> Result<Option<Self>> {
        Ok(PACKAGE.find().await?.map(Self))
    }

    /// Plays every scenario; `baseline` lists those that are expected to fail.
    pub async fn run(&self, stack: &Stack, baseline: &Path) -> Result<Verdict> {
        let folder = self.0.folder().context("the suite lies nowhere")?;
        let module = tempfile::Builder::new()
            .prefix("token-")
            .suffix(".mjs")
            .tempfile_in(folder)
            .context("making the module that gives the token")?;
        std::fs::write(module.path(), TOKEN_MODULE).context("writing the module that gives the token")?;
        let output = self
            .0
            .bare_command()
            .args(["server", "--suite", "all", "--url", &stack.url("/mcp"), "--expected-failures"])
            .arg(baseline)
            .arg("--output-dir")
            .arg(stack.scratch().join("conformance"))
            .env("NODE_OPTIONS", format!("--import=file://{}", module.path().display()))
            .env("MCP_TOKEN", stack.token())
            .env("HOME", stack.scratch())
            .current_dir(stack.scratch())
            .stdin(Stdio::null())
            .kill_on_drop(true)
            .output();
        let output = tokio::time::timeout(DEADLINE, output).await.context("the suite does not end")?;
        let output = output.context("starting the suite")?;
        let told = String::from_utf8_lossy(&output.stdout);
        let summary = told.split_once("=== SUMMARY ===").map_or(&*told, |(_, summary)| summary);
        let summary = format!("{summary}{}", String::from_utf8_lossy(&output.stderr));
        Ok(Verdict { is_as_expected: output.status.success(), summary })
    }
}
