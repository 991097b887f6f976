//! Reads the user's own rules, in the format of gitleaks' configuration. What speaks of files and commits is passed over: here
//! are neither.

use std::path::Path;

use serde::Deserialize;

use super::rule::{Allow, AllowList, AllowMode, Group, Pattern, Place, Rule, RulesError, Target};

/// What the user adds to the built-in rules. The allow list counts for those too.
#[derive(Debug, Default)]
pub(super) struct UserRules {
    pub(super) rules: Vec<Rule>,
    pub(super) allow: Allow,
}

#[derive(Deserialize)]
struct Document {
    #[serde(default)]
    rules: Vec<Definition>,
    allowlist: Option<AllowDefinition>,
    #[serde(default)]
    allowlists: Vec<AllowDefinition>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Definition {
    id: Option<String>,
    regex: Option<String>,
    path: Option<String>,
    #[serde(default)]
    secret_group: usize,
    #[serde(default)]
    entropy: f64,
    #[serde(default)]
    keywords: Vec<String>,
    allowlist: Option<AllowDefinition>,
    #[serde(default)]
    allowlists: Vec<AllowDefinition>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct AllowDefinition {
    condition: Option<String>,
    regex_target: Option<String>,
    #[serde(default)]
    regexes: Vec<String>,
    #[serde(default)]
    stopwords: Vec<String>,
    #[serde(default)]
    target_rules: Vec<String>,
}

pub(super) fn read(path: &Path) -> Result<UserRules, RulesError> {
    let text = std::fs::read_to_string(path).map_err(|source| RulesError::Read { path: path.to_owned(), source })?;
    parse(&text, path)
}

fn parse(text: &str, path: &Path) -> Result<UserRules, RulesError> {
    let format = |message: String| RulesError::Format { path: path.to_owned(), message };
    let document: Document = toml::from_str(text).map_err(|error| format(error.message().to_owned()))?;
    let mut rules = Vec::new();
    for (number, definition) in document.rules.into_iter().enumerate() {
        let id = definition.id.clone().unwrap_or_else(|| format!("number {}", number + 1));
        let unusable = |message: String| RulesError::Rule { path: path.to_owned(), rule: id.clone(), message };
        rules.extend(definition.into_rule().map_err(unusable)?);
    }
    let mut allow = Allow::default();
    for definition in document.allowlist.into_iter().chain(document.allowlists) {
        let targets = definition.target_rules.clone();
        let unusable =
            |message: String| RulesError::Rule { path: path.to_owned(), rule: "allowlist".to_owned(), message };
        if targets.is_empty() {
            allow.lists.push(definition.list().map_err(unusable)?);
            continue;
        }
        for target in targets {
            let rule = rules.iter_mut().find(|rule: &&mut Rule| rule.id == target);
            let rule = rule.ok_or_else(|| unusable(format!("there is no rule `{target}` in this file")))?;
            rule.allow.lists.push(definition.list().map_err(unusable)?);
        }
    }
    Ok(UserRules { rules, allow })
}

impl Definition {
    /// `None` for a rule about the names of files.
    fn into_rule(self) -> Result<Option<Rule>, String> {
        let Some(id) = self.id.filter(|id| !id.is_empty()) else { return Err("it has no id".to_owned()) };
        if !id.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte)) {
            return Err("an id is made of letters, digits, `-`, `_` and `.`".to_owned());
        }
        let Some(regex) = self.regex else {
            return if self.path.is_some() { Ok(None) } else { Err("it has no regex".to_owned()) };
        };
        let pattern = Pattern::of_user(regex).map_err(|error| error.to_string())?;
        let groups = pattern.regex().captures_len();
        if self.secret_group >= groups {
            return Err(format!("secretGroup is {}, the regex has {} groups", self.secret_group, groups - 1));
        }
        if pattern.regex().is_match(b"") {
            return Err("the regex matches nothing at all, that is, everywhere".to_owned());
        }
        let lists = self.allowlist.iter().chain(&self.allowlists).map(AllowDefinition::list);
        Ok(Some(Rule {
            id,
            before: None,
            keywords: self.keywords.into_iter().filter(|word| !word.is_empty()).collect(),
            place: Place::Anywhere,
            entropy: self.entropy,
            group: if self.secret_group == 0 { Group::FirstUsed } else { Group::Number(self.secret_group) },
            allow: Allow { lists: lists.collect::<Result<_, _>>()? },
            pattern,
        }))
    }
}

impl AllowDefinition {
    fn list(&self) -> Result<AllowList, String> {
        let patterns = self.regexes.iter().cloned().map(Pattern::of_user).collect::<Result<Vec<_>, _>>();
        let target = match self.regex_target.as_deref() {
            None | Some("" | "secret") => Target::Secret,
            Some("match") => Target::Match,
            Some("line") => Target::Line,
            Some(other) => return Err(format!("regexTarget is `{other}`: expected `secret`, `match` or `line`")),
        };
        let mode = match self.condition.as_deref().map(str::to_ascii_uppercase).as_deref() {
            None | Some("" | "OR" | "||") => AllowMode::One,
            Some("AND" | "&&") => AllowMode::All,
            Some(other) => return Err(format!("condition is `{other}`: expected `OR` or `AND`")),
        };
        Ok(AllowList {
            patterns: patterns.map_err(|error| error.to_string())?,
            stopwords: self.stopwords.iter().map(|word| word.to_lowercase()).collect(),
            target,
            mode,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::redactor::Redactor;
    use super::*;

    const FILE: &str = r#"
        title = "ours"
        [extend]
        useDefault = true
        [[rules]]
        id = "acme"
        description = "ACME"
        regex = '''(?i)acme[:=]\s*([a-z0-9]{8,})'''
        entropy = 2.0
        keywords = ["acme"]
        tags = ["x"]
        [rules.allowlist]
        regexes = ['''^known''']
        stopwords = ["sample"]
        [[rules]]
        id = "two-groups"
        regex = '''(left)-([0-9]{4})'''
        secretGroup = 2
        [[rules.allowlists]]
        condition = "AND"
        regexTarget = "line"
        regexes = ['''harmless''']
        stopwords = ["1111"]
        [[rules]]
        id = "only-a-path"
        path = '''\.pem$'''
        [allowlist]
        paths = ['''vendor/''']
        regexes = ['''^publicly''']
    "#;

    fn redactor() -> Redactor {
        Redactor::with(parse(FILE, Path::new("rules.toml")).unwrap())
    }

    fn check_refused(text: &str, expected: &str) {
        let error = parse(text, Path::new("/etc/rules.toml")).unwrap_err().to_string();
        assert!(error.contains("/etc/rules.toml") && error.contains(expected), "{error}");
    }

    #[test]
    fn finds_what_the_users_rules_describe() {
        let redactor = redactor();
        assert_eq!(redactor.clean("Acme: a1b2c3d4e5"), "Acme: ‹redacted:acme›");
        assert_eq!(redactor.clean("left-4711"), "left-‹redacted:two-groups›");
    }

    #[test]
    fn lets_through_what_the_users_allow_lists_name() {
        let redactor = redactor();
        for text in ["acme=known1b2c3", "acme=sample12b3", "acme=publicly1b2", "acme=aaaaaaaaaa", "harmless left-1111"]
        {
            assert_eq!(redactor.clean(text), text);
        }
        assert_ne!(redactor.clean("left-1111"), "left-1111", "of a list with AND all conditions must hold");
    }

    #[test]
    fn refuses_a_file_with_a_rule_that_cannot_be_used_and_names_it() {
        check_refused("[[rules]]\nid = 'torn'\nregex = '(a'", "`torn`");
        check_refused("[[rules]]\nid = 'many'\nregex = 'a'\nsecretGroup = 3", "`many`");
        check_refused("[[rules]]\nid = 'all'\nregex = 'a*'", "`all`");
        check_refused("[[rules]]\nid = 'none'", "`none`");
        check_refused("[[rules]]\nregex = 'a'", "`number 1`");
        check_refused("[[rules]]\nid = 'a b'\nregex = 'a'", "`a b`");
        check_refused("[[rules", "not in gitleaks' format");
    }
}
