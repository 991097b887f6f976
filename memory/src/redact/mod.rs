//! What is never kept: secrets by their shape or by their name, and parts that a person marked `<private>`.
//!
//! `rules.toml` says what secrets look like, `redactor` finds them in a text, `json` in a value. A text is read once for the
//! keywords of all rules; only where one stands is anything else done. What was found is replaced by [`PRIVATE_MARK`] or by
//! a placeholder such as `‹redacted:aws-access-key›`, neither of which is ever matched again. When text is cleaned is the
//! caller's business; it must be before anything is cut, for half a secret has lost its shape.

mod assignment;
mod entropy;
mod gitleaks;
mod json;
mod names;
mod private;
mod redactor;
mod rule;
mod rules;
mod taken;
mod value;

use std::borrow::Cow;
use std::path::Path;
use std::sync::OnceLock;

use serde_json::Value;

use redactor::Redactor;
pub use rule::RulesError;

/// What stands where a private part was.
pub const PRIVATE_MARK: &str = "‹private›";

/// How the placeholder of a secret begins; its rule's id and `›` follow.
const SECRET_MARK: &str = "‹redacted:";

static INSTALLED: OnceLock<Redactor> = OnceLock::new();

/// Where the user's rules lie, among the files that a person edits, unless they are named elsewhere.
const RULES_FILE: &str = "redact.toml";

/// Adds the rules of the user, in gitleaks' format, to the built-in ones, for this whole process: those of the file that is named,
/// else those of `redact.toml` in the folder of the settings, if that is there. To be called once, before anything is cleaned.
pub fn install_from(named: Option<&Path>, settings_folder: Option<&Path>) -> Result<(), RulesError> {
    let usual = settings_folder.map(|folder| folder.join(RULES_FILE)).filter(|file| file.exists());
    match named.or(usual.as_deref()) {
        Some(rules) => install(rules),
        None => Ok(()),
    }
}

/// Adds the rules of that file.
pub fn install(user_rules: &Path) -> Result<(), RulesError> {
    let redactor = Redactor::with(gitleaks::read(user_rules)?);
    INSTALLED.set(redactor).map_err(|_| RulesError::TooLate { path: user_rules.to_owned() })
}

/// Takes secrets and private parts out of a text. Cleaning twice changes nothing.
pub fn clean(text: &str) -> Cow<'_, str> {
    installed().clean(text)
}

/// The same in every string of a value, names of members included. A member whose name says that it is secret loses its value
/// whatever that looks like. Objects and arrays keep their members and items.
pub fn clean_json(value: &mut Value) {
    json::clean(installed(), value);
}

/// Whether something was taken out of a text.
pub fn is_cleaned(text: &str) -> bool {
    text.contains(SECRET_MARK) || text.contains(PRIVATE_MARK)
}

/// How often this process has taken something out, by the rule's id; what a person's own rules found is one number.
pub fn taken_out() -> Vec<(&'static str, u64)> {
    installed().taken().read().collect()
}

/// How many keywords of the rules stand in a text: the part of [`clean`] that every text pays, for comparing with the whole.
pub fn scan_keywords(text: &str) -> usize {
    installed().hits(text).count()
}

fn installed() -> &'static Redactor {
    INSTALLED.get_or_init(|| Redactor::with(gitleaks::UserRules::default()))
}

/// Whether something was taken out of this text before.
fn has_mark(text: &str) -> bool {
    text.contains(SECRET_MARK) || text.contains(PRIVATE_MARK)
}
