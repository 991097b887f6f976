//! Names whose values are secrets: of JSON members, variables, options and elements.

use serde::Deserialize;

/// Longer ones are no names.
const MAX_NAME_BYTES: usize = 96;

#[derive(Debug, Deserialize)]
pub(super) struct Names {
    names: Vec<Kind>,
    names_in_text: InText,
}

/// One kind of secret name.
#[derive(Debug, Deserialize)]
pub(super) struct Kind {
    pub(super) id: String,
    pub(super) value: Strictness,
    endings: Vec<String>,
    words: Vec<String>,
}

/// How much a value must look like a secret to be one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Strictness {
    Any,
    Random,
    Long,
    Header,
}

#[derive(Debug, Deserialize)]
struct InText {
    keywords: Vec<String>,
    suffixes: Vec<String>,
    except: Vec<String>,
}

impl Names {
    /// What stands in a text wherever one of the names does.
    pub(super) fn keywords(&self) -> &[String] {
        &self.names_in_text.keywords
    }

    /// The ids of all kinds.
    pub(super) fn ids(&self) -> impl Iterator<Item = &str> {
        self.names.iter().map(|kind| kind.id.as_str())
    }

    /// The kind of secret that something of this name holds, if any: `dbPassword`, `DB_PASSWORD_1` and `db-password` alike.
    pub(super) fn kind_of(&self, name: &str) -> Option<&Kind> {
        if name.len() > MAX_NAME_BYTES || !name.is_ascii() {
            return None;
        }
        let mut words = words_of(name);
        while let [_, .., last] = &words[..] {
            let is_number = last.bytes().all(|byte| byte.is_ascii_digit());
            if !is_number && !self.names_in_text.suffixes.contains(last) {
                break;
            }
            words.pop();
        }
        let joined = words.concat();
        let joined = joined.trim_end_matches(|c: char| c.is_ascii_digit());
        let last = words.last()?.trim_end_matches(|c: char| c.is_ascii_digit());
        if self.names_in_text.except.iter().any(|except| joined.ends_with(except.as_str())) {
            return None;
        }
        self.names.iter().find(|kind| {
            kind.endings.iter().any(|ending| joined.ends_with(ending.as_str()))
                || kind.words.iter().any(|word| word == last)
        })
    }
}

/// The words of a name in lower case.
pub(super) fn words_of(name: &str) -> Vec<String> {
    let bytes = name.as_bytes();
    let mut words: Vec<String> = Vec::new();
    let mut in_word = false;
    for (at, byte) in bytes.iter().enumerate() {
        if !byte.is_ascii_alphanumeric() {
            in_word = false;
            continue;
        }
        let before = at.checked_sub(1).map(|before| bytes[before]);
        let after = bytes.get(at + 1);
        let hump = byte.is_ascii_uppercase()
            && (before.is_some_and(|before| before.is_ascii_lowercase() || before.is_ascii_digit())
                || (before.is_some_and(|before| before.is_ascii_uppercase())
                    && after.is_some_and(u8::is_ascii_lowercase)));
        if !in_word || hump {
            words.push(String::new());
        }
        in_word = true;
        if let Some(word) = words.last_mut() {
            word.push(char::from(byte.to_ascii_lowercase()));
        }
    }
    words
}

#[cfg(test)]
mod tests {
    use super::super::rules;

    fn check(name: &str, expected: Option<&str>) {
        let names = rules::read().names;
        assert_eq!(names.kind_of(name).map(|kind| kind.id.as_str()), expected, "{name}");
    }

    #[test]
    fn knows_a_name_in_every_spelling() {
        for name in ["password", "DB_PASSWORD", "dbPassword", "db-password", "PGPASSWORD", "password2", "PASSWORD_PROD"]
        {
            check(name, Some("password"));
        }
        for name in ["apiKey", "X-Api-Key", "OPENAI_API_KEY", "aws_secret_access_key", "clientSecret"] {
            check(name, Some("secret"));
        }
        for name in ["token", "accessToken", "GITHUB_TOKEN", "_authToken"] {
            check(name, Some("token"));
        }
        check("Authorization", Some("authorization"));
        check("SIGNATURE_KEY", Some("key"));
    }

    #[test]
    fn takes_no_other_name_for_one() {
        for name in [
            "password_hash",
            "passwordField",
            "tokens",
            "max_tokens",
            "tokenUrl",
            "keyboard",
            "monkey",
            "author",
            "passport",
            "compass",
            "publicKey",
            "nextPageToken",
            "secretName",
            "keys",
            "cookies",
            "api_key_id",
            "PWD_LENGTH",
            "",
        ] {
            check(name, None);
        }
    }
}
