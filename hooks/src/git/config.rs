//! The remote's URL from a repository's `config`, freed of credentials.
//!
//! Reads only what decides that one value: sections, `url` keys, quotes, comments and continued lines. Includes and
//! `insteadOf` are left out.

/// The URL of `origin`, or else of the first remote that has one.
pub(super) fn remote_url(config: &str) -> Option<String> {
    let mut remote: Option<String> = None;
    let mut first: Option<String> = None;
    let mut lines = config.lines();
    while let Some(line) = lines.next() {
        let mut rest = line.trim_start();
        if let Some(header) = rest.strip_prefix('[') {
            let Some((name, after)) = header.split_once(']') else { continue };
            remote = remote_of_section(name);
            rest = after.trim_start();
        }
        let Some(name) = &remote else { continue };
        let Some((key, value)) = rest.split_once('=') else { continue };
        if !key.trim_end().eq_ignore_ascii_case("url") {
            continue;
        }
        let url = without_credentials(&value_of(value, &mut lines));
        if name == "origin" {
            return Some(url);
        }
        first.get_or_insert(url);
    }
    first
}

/// The remote that a section header speaks of, between its brackets.
fn remote_of_section(header: &str) -> Option<String> {
    let (section, subsection) = header.split_once(char::is_whitespace).or_else(|| header.split_once('.'))?;
    if !section.trim().eq_ignore_ascii_case("remote") {
        return None;
    }
    Some(subsection.trim().trim_matches('"').replace("\\\"", "\"").replace("\\\\", "\\"))
}

/// A value as Git reads it: quotes and escapes resolved, comments gone, continued lines joined.
fn value_of<'a>(text: &'a str, following: &mut impl Iterator<Item = &'a str>) -> String {
    let mut value = String::new();
    let mut text = text.trim_start();
    let mut is_quoted = false;
    // Spaces at the end count only inside quotes.
    let mut kept_length = 0;
    loop {
        let mut is_continued = false;
        let mut characters = text.chars();
        while let Some(character) = characters.next() {
            match character {
                '"' => is_quoted = !is_quoted,
                '#' | ';' if !is_quoted => break,
                '\\' => match characters.next() {
                    Some('n') => value.push('\n'),
                    Some('t') => value.push('\t'),
                    Some(other) => value.push(other),
                    None => is_continued = true,
                },
                other => value.push(other),
            }
            if is_quoted || !character.is_whitespace() {
                kept_length = value.len();
            }
        }
        let next = if is_continued { following.next() } else { None };
        let Some(next) = next else { break };
        text = next;
    }
    value.truncate(kept_length);
    value
}

/// A URL that can be shown to others: no password, no token, no query.
///
/// Under SSH the user's name is part of the address and stays; elsewhere a token may stand in its place.
fn without_credentials(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else {
        return url.to_owned();
    };
    let rest = &rest[..rest.find(['?', '#']).unwrap_or(rest.len())];
    let authority_length = rest.find('/').unwrap_or(rest.len());
    let (user, place) = match rest[..authority_length].rfind('@') {
        Some(at) => (Some(&rest[..at]), &rest[at + 1..]),
        // A password with a slash in it: what looks like a port is none.
        None if !has_plain_port(&rest[..authority_length]) => match rest.rfind('@') {
            Some(at) => (None, &rest[at + 1..]),
            None => (None, rest),
        },
        None => (None, rest),
    };
    match user.map(|user| user.split(':').next().unwrap_or_default()) {
        Some(name) if scheme.eq_ignore_ascii_case("ssh") || scheme.eq_ignore_ascii_case("git+ssh") => {
            format!("{scheme}://{name}@{place}")
        }
        _ => format!("{scheme}://{place}"),
    }
}

fn has_plain_port(authority: &str) -> bool {
    match authority.rsplit_once(':') {
        Some((_, port)) => port.ends_with(']') || port.bytes().all(|byte| byte.is_ascii_digit()),
        None => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(config: &str, expected: Option<&str>) {
        assert_eq!(remote_url(config).as_deref(), expected, "{config}");
    }

    #[test]
    fn prefers_origin_to_the_first_remote() {
        check("[remote \"fork\"]\n\turl = a:b\n[remote \"origin\"]\n\turl = c:d\n", Some("c:d"));
        check("[core]\n\tbare = false\n[remote \"fork\"]\n\turl = a:b\n[remote \"up\"]\n\turl = c:d\n", Some("a:b"));
        check("[branch \"main\"]\n\turl = a:b\n[remote \"origin\"]\n\tfetch = x\n", None);
    }

    #[test]
    fn takes_the_first_of_several_urls() {
        check("[remote \"origin\"]\n\tpushurl = p:q\n\turl = a:b\n\turl = c:d\n", Some("a:b"));
    }

    #[test]
    fn reads_what_git_allows_to_write() {
        check("[REMOTE \"origin\"] URL=a:b # home\n", Some("a:b"));
        check("[remote \"origin\"]\nurl = \"a:b#c\" ; kept\n", Some("a:b#c"));
        check("[remote \"origin\"]\nurl = a:\\\nb\n", Some("a:b"));
        check("[remote.origin]\nurl = a:b\n", Some("a:b"));
        check("[remote \"or\\\"igin\"]\nurl = a:b\n[broken\nurl = c:d", Some("a:b"));
    }

    fn check_freed(url: &str, expected: &str) {
        assert_eq!(without_credentials(url), expected);
    }

    #[test]
    fn removes_credentials_from_a_url() {
        check_freed("https://user:token@example.com/a/b.git", "https://example.com/a/b.git");
        check_freed("https://token@example.com/a", "https://example.com/a");
        check_freed("https://user:p@ss@example.com:8443/a", "https://example.com:8443/a");
        check_freed("https://user:p/a:s@example.com/a", "https://example.com/a");
        check_freed("https://example.com/a?private_token=x", "https://example.com/a");
        check_freed("helper::https://u:p@example.com/a", "helper::https://example.com/a");
        check_freed("ssh://git:password@example.com:22/a", "ssh://git@example.com:22/a");
    }

    #[test]
    fn leaves_other_urls_as_they_are() {
        for url in [
            "git@example.com:acme/widgets.git",
            "ssh://git@example.com/acme/widgets.git",
            "https://example.com:8443/@scope/widgets",
            "https://[::1]/a@b",
            "https://[::1]:8443/a@b",
            "../widgets.git",
            "C:\\code\\widgets",
            "file:///srv/git/a@b",
        ] {
            check_freed(url, url);
        }
    }
}
