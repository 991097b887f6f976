//! Whether the value of something with a secret name is a secret, or a placeholder, a label or a piece of code.

use super::entropy;
use super::names::{Strictness, words_of};

/// How a value stands behind its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// A string member of JSON.
    Member,
    /// A number member of JSON.
    Number,
    /// A literal in quotes, in code.
    Quoted,
    /// `NAME=value` as in an environment file or before a command.
    Environment,
    /// Without quotes, in YAML, properties, code or a sentence.
    Plain,
    /// After an option on a command line.
    Argument,
    /// Between two tags.
    Element,
    /// The next item after the name, as in `setenv("NAME", "value")`.
    Pair,
}

/// Words that stand where a value would, in documentation and schemas.
const NO_VALUES: [&str; 62] = [
    "string",
    "text",
    "str",
    "hidden",
    "required",
    "optional",
    "true",
    "false",
    "none",
    "null",
    "nil",
    "undefined",
    "varchar",
    "char",
    "input",
    "password",
    "secret",
    "token",
    "changeme",
    "change_me",
    "change-me",
    "changeit",
    "placeholder",
    "redacted",
    "masked",
    "removed",
    "omitted",
    "example",
    "sample",
    "dummy",
    "unset",
    "empty",
    "missing",
    "invalid",
    "unknown",
    "default",
    "bearer",
    "basic",
    "flag",
    "option",
    "argument",
    "parameter",
    "value",
    "file",
    "from",
    "with",
    "prompt",
    "will",
    "that",
    "this",
    "must",
    "should",
    "when",
    "which",
    "stdin",
    "auto",
    "inherit",
    "boolean",
    "number",
    "object",
    "bool",
    "int",
];

const CODE_WORDS: [&str; 16] = [
    "pass", "secret", "token", "key", "pwd", "cred", "auth", "param", "arg", "value", "input", "str", "var", "field",
    "user", "hash",
];

pub(super) fn is_secret(value: &str, form: Form, strictness: Strictness, name: &str) -> bool {
    let value = value.trim();
    if is_no_value(value) || repeats_a_name(value, name) {
        return false;
    }
    match strictness {
        Strictness::Header => form == Form::Member && value.len() >= 8 && !is_label(value),
        Strictness::Any => match form {
            Form::Member => value.len() >= 3 && !is_label(value),
            Form::Number => value.len() >= 4,
            Form::Quoted | Form::Element => value.len() >= 4 && !is_label(value) && !is_path(value),
            Form::Environment => value.len() >= 4 && !is_expression(value) && !is_path(value),
            Form::Argument => value.len() >= 4 && !is_expression(value) && !is_path(value) && !value.starts_with('-'),
            Form::Plain => {
                value.len() >= 6 && has_letter(value) && (has_digit(value) || has_sign(value)) && !is_code(value)
            }
            Form::Pair => value.len() >= 6 && has_letter(value) && has_digit(value) && !is_code(value),
        },
        Strictness::Random => match form {
            Form::Number => false,
            Form::Plain | Form::Pair => looks_random(value, 12) && !is_code(value),
            _ => looks_random(value, 10) && !is_path(value),
        },
        Strictness::Long => match form {
            Form::Environment | Form::Argument => looks_random(value, 16) && !is_path(value),
            Form::Member | Form::Quoted => {
                has_digit(value)
                    && looks_random(value, 20)
                    && entropy::bits_per_byte(value.as_bytes()) > 3.6
                    && !is_path(value)
                    && !is_digest(value)
            }
            _ => false,
        },
    }
}

/// Whether something of a secret's shape says itself that it is an example.
pub(super) fn is_example(secret: &str) -> bool {
    let bytes = secret.as_bytes();
    let says_so = bytes.windows(7).any(|window| window.eq_ignore_ascii_case(b"example"));
    let repeats =
        bytes.windows(8).any(|window| window.iter().all(|byte| *byte == window[0]) && b"xX*.0-_#".contains(&window[0]));
    says_so || repeats
}

/// Nothing, a variable, a template, a row of stars, or a word for what should stand here.
fn is_no_value(value: &str) -> bool {
    let lower = value.to_ascii_lowercase();
    let bytes = value.as_bytes();
    let Some(first) = bytes.first() else { return true };
    bytes.len() < 3
        || bytes.iter().all(|byte| b"*xX.-_#?0".contains(byte))
        || NO_VALUES.contains(&lower.as_str())
        || is_variable(value)
        || (*first == b'<' && value.ends_with('>'))
        || (*first == b'[' && value.ends_with(']'))
        || (*first == b'{' && value.ends_with('}'))
        || (*first == b'%' && value.ends_with('%'))
        || value.contains("${")
        || value.contains("{{")
        || value.contains("$(")
        || value.contains("<%")
        || value.contains("required|")
        || value.contains("|required")
        || is_example(value)
        || lower.starts_with("your-")
        || lower.starts_with("your_")
        || lower.starts_with("my-secret")
        || lower.starts_with("xxx")
        || lower.starts_with("enter ")
        || lower.starts_with("replace")
        || lower.starts_with("insert")
        || lower.starts_with("process.env")
        || lower.starts_with("os.environ")
        || lower.starts_with("secrets.")
        || lower.starts_with("op://")
        || lower.starts_with("vault:")
        || lower.starts_with("keyring:")
        || lower.starts_with("arn:aws:")
        || lower.ends_with("...")
        || lower.ends_with('…')
        || lower.ends_with("_here")
        || lower.ends_with("-here")
        || lower.ends_with("-goes-here")
}

/// `$NAME`, `$name`, `%NAME%`, or the name of a variable alone: `DATABASE_PASSWORD`.
fn is_variable(value: &str) -> bool {
    if let Some(name) = value.strip_prefix('$') {
        let name = name.strip_prefix("env:").unwrap_or(name);
        let of_one_case = |is_case: fn(&u8) -> bool| name.bytes().all(|byte| is_case(&byte) || byte == b'_');
        return !name.is_empty()
            && (of_one_case(u8::is_ascii_lowercase)
                || name.bytes().all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_'));
    }
    value.contains('_') && value.bytes().all(|byte| byte.is_ascii_uppercase() || byte == b'_')
}

/// `password = "password"`, `SET_TOKEN = "auth/set-token"`: the value is a name itself.
fn repeats_a_name(value: &str, name: &str) -> bool {
    if !value.bytes().all(|byte| byte.is_ascii_alphabetic() || b"_-./: ".contains(&byte)) {
        return false;
    }
    let words = words_of(value);
    let Some(last) = words.last() else { return true };
    let is_same = words.concat() == words_of(name).concat();
    let ends_alike = words.len() > 1
        && ["password", "passwd", "secret", "token", "key", "pass", "pwd", "authorization"].contains(&last.as_str());
    is_same || ends_alike
}

/// Words for a person: `Enter your password`, `Forgot?`. Several lower-case words may be a pass phrase.
fn is_label(value: &str) -> bool {
    if !value.contains(char::is_whitespace) {
        return false;
    }
    let lower = value.to_lowercase();
    let is_sentence =
        value.chars().next().is_some_and(char::is_uppercase) || value.ends_with(['.', '?', '!', ':', '…']);
    let speaks_of_it = ["password", "passphrase", "secret", "token", "key", "credential", "please", "must "]
        .iter()
        .any(|word| lower.contains(word));
    let scheme = ["bearer ", "basic ", "token "].iter().find_map(|scheme| lower.strip_prefix(scheme));
    match scheme {
        Some(rest) => rest.trim().len() < 4 || is_no_value(rest.trim()),
        None => speaks_of_it || (is_sentence && !has_digit(value)),
    }
}

fn is_expression(value: &str) -> bool {
    value.starts_with(['$', '`', '(', '<', '{', '[', '%'])
        || value.contains("()")
        || value.contains("::")
        || value.contains("->")
        || (value.contains('(') && value.ends_with([')', ';', ',']))
        || is_member_path(value)
}

/// What stands without quotes in code: a call, a type, a path of members, a name that speaks of what it holds.
fn is_code(value: &str) -> bool {
    let starts_as_code =
        value.starts_with(['!', '*', '&', '|', '%', '$', '@', '#', '/', '.', '-', '+', '=', '~', '\\', '`', '?', '^']);
    if (starts_as_code && (is_path(value) || !looks_random(value, 20)))
        || value.contains(['(', ')', '{', '}', '[', ']', '<', '>', ';', '|', '‹', '`', '"', '\''])
        || value.contains("::")
        || value.contains("->")
        || value.contains("://")
        || value.contains("&&")
        || value.contains("??")
        || is_member_path(value)
    {
        return true;
    }
    let is_identifier = value.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte));
    let lower = value.to_ascii_lowercase();
    is_identifier && (CODE_WORDS.iter().any(|word| lower.contains(word)) || is_type(value))
}

/// `response.token`, `self.password1`, `config->secret`.
fn is_member_path(value: &str) -> bool {
    let parts: Vec<_> = value.trim_end_matches([';', ',', '!', '?']).split('.').collect();
    parts.len() > 1
        && parts.iter().all(|part| {
            let part = part.trim_end_matches(['?', '!']);
            part.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
                && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
                && part.len() <= 40
        })
        && words_like(value)
}

/// `Utf8String`, `Base64`.
fn is_type(value: &str) -> bool {
    value.starts_with(|c: char| c.is_ascii_uppercase())
        && value.bytes().all(|byte| byte.is_ascii_alphanumeric())
        && words_like(value)
        && value.bytes().filter(u8::is_ascii_digit).count() <= 2
}

fn is_path(value: &str) -> bool {
    let parts: Vec<_> = value.split(['/', '\\']).collect();
    let is_rooted = value.starts_with(['/', '.', '~']) || value.contains(":\\");
    parts.len() > 1
        && (is_rooted || value.contains("://"))
        && (value.contains("://")
            || parts.iter().all(|part| {
                part.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-:~@".contains(&byte))
                    && (part.bytes().all(|byte| !byte.is_ascii_uppercase()) || words_like(part))
            }))
}

/// A hash, a commit, a UUID.
fn is_digest(value: &str) -> bool {
    let value = value.strip_prefix("sha256:").or_else(|| value.strip_prefix("sha256-")).unwrap_or(value);
    let is_hexadecimal = value.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b'-');
    is_hexadecimal || value.starts_with("sha512-") || value.starts_with("sha384-") || value.starts_with("sha1-")
}

/// Made by a machine rather than of words.
fn looks_random(value: &str, min_bytes: usize) -> bool {
    let is_graphic = value.bytes().all(|byte| byte.is_ascii_graphic() && !b"\"'`<>(){}[]\\,;|".contains(&byte));
    if value.len() < min_bytes || !is_graphic || value.contains("://") || words_like(value) {
        return false;
    }
    let entropy = entropy::bits_per_byte(value.as_bytes());
    let mixes_cases =
        value.bytes().any(|byte| byte.is_ascii_lowercase()) && value.bytes().any(|byte| byte.is_ascii_uppercase());
    (has_letter(value) && has_digit(value) && entropy >= 2.8) || (mixes_cases && value.len() >= 16 && entropy >= 3.8)
}

/// Whether it is all words and numbers: `user-profile-2024`, `created_at`, `v1.2.3`, `CamelCaseName`.
fn words_like(value: &str) -> bool {
    value.split(|c: char| "-_./:@+,".contains(c)).filter(|part| !part.is_empty()).all(|part| {
        let letters = part.trim_end_matches(|c: char| c.is_ascii_digit());
        let number = part.len() - letters.len();
        if letters.is_empty() {
            return number <= 14;
        }
        if number > 4 || !letters.bytes().all(|byte| byte.is_ascii_alphabetic()) {
            // Words with a number within: `Utf8String`, `oauth2Client`.
            return part.len() <= 24 && digit_runs(part) <= 1 && humps_are_words(part) && number <= 4;
        }
        humps_are_words(letters)
    })
}

fn digit_runs(part: &str) -> usize {
    part.split(|c: char| !c.is_ascii_digit()).filter(|run| !run.is_empty()).count()
}

/// Whether a text in mixed case changes it as names do, a few letters at least between two changes.
fn humps_are_words(part: &str) -> bool {
    let words = words_of(part);
    let letters: usize = words.iter().map(String::len).sum();
    let has_vowels =
        part.len() < 7 || part.bytes().filter(|byte| b"aeiouyAEIOUY".contains(byte)).count() * 6 >= part.len();
    words.len() * 3 <= letters.max(3) && has_vowels && letters / words.len().max(1) <= 16
}

fn has_letter(value: &str) -> bool {
    value.bytes().any(|byte| byte.is_ascii_alphabetic())
}

fn has_digit(value: &str) -> bool {
    value.bytes().any(|byte| byte.is_ascii_digit())
}

fn has_sign(value: &str) -> bool {
    value.bytes().any(|byte| b"!@#$%^&*+~=".contains(&byte))
}
