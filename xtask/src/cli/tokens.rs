//! `token`: who may do what, beside this machine's own programs.

use clap::{Args, Subcommand};
use memory::access::Scope;

use super::JsonArgs;

#[derive(Debug, Subcommand)]
pub enum TokenCommand {
    /// Make a token and print it, once
    Create(CreateTokenArgs),
    /// Show the tokens, what they allow, and when they were last used
    List(JsonArgs),
    /// Let a token allow nothing any more
    Revoke(RevokeTokenArgs),
    /// Show who made and revoked tokens, forgot, exported, merged: the newest last
    Log(TokenLogArgs),
}

#[derive(Debug, Args)]
pub struct CreateTokenArgs {
    /// By which it is revoked and the log names it, such as `ada-laptop`
    pub name: String,

    /// What it allows: ingest (hand over events), recall (an agent's tools), admin; may be given several times
    #[arg(long = "scope", value_name = "SCOPE", required = true, value_delimiter = ',')]
    pub scopes: Vec<Scope>,

    /// Whose it is; a token of nobody's sees everything
    #[arg(long)]
    pub person: Option<String>,
}

#[derive(Debug, Args)]
pub struct RevokeTokenArgs {
    /// Its name, as `token list` shows it
    pub name: String,
}

#[derive(Debug, Args)]
pub struct TokenLogArgs {
    /// How many of the last entries
    #[arg(short = 'n', long, default_value_t = 50)]
    pub lines: i64,

    /// Print JSON
    #[arg(long)]
    pub json: bool,
}
