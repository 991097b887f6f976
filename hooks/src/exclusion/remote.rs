//! One spelling for all the ways in which a remote can be written, by the rules of `memory::project`: `host/path`, without
//! scheme, user, password, port's default or `.git`.

/// Hosts that tell paths apart without regard to case.
const CASELESS_HOSTS: [&str; 5] = ["github.com", "gitlab.com", "bitbucket.org", "codeberg.org", "dev.azure.com"];

/// Other doors of the same hosts, for networks that let only HTTPS through.
const OTHER_NAMES: [(&str, &str); 6] = [
    ("ssh.github.com", "github.com"),
    ("www.github.com", "github.com"),
    ("altssh.gitlab.com", "gitlab.com"),
    ("www.gitlab.com", "gitlab.com"),
    ("altssh.bitbucket.org", "bitbucket.org"),
    ("ssh.dev.azure.com", "dev.azure.com"),
];

/// `None` for a remote that names no host (a local path or a bundle): such a repository is known by its own folder.
pub(super) fn normalise(url: &str) -> Option<String> {
    let url = url.trim();
    // A helper's name: `persistent-https::https://...`.
    let url = url.split_once("::").filter(|(_, rest)| rest.contains("://")).map_or(url, |(_, rest)| rest);
    let (authority, path) = match url.split_once("://") {
        Some((scheme, rest)) if !scheme.eq_ignore_ascii_case("file") => authority_and_path(rest)?,
        Some(_) => return None,
        None => scp_form(url)?,
    };
    let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host).to_lowercase();
    let host =
        ["22", "80", "443", "9418"].iter().find_map(|port| host.strip_suffix(&format!(":{port}"))).unwrap_or(&host);
    let host = canonical(host);
    let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
    let path = parts.join("/");
    let path = path.strip_suffix(".git").unwrap_or(&path);
    let path = if host == "dev.azure.com" { azure_path(path) } else { path.to_owned() };
    let path = if CASELESS_HOSTS.contains(&host) { path.to_lowercase() } else { path };
    (!host.is_empty() && !path.is_empty()).then(|| format!("{host}/{path}"))
}

/// Who and where, and what there, without a query: it may hold a token.
fn authority_and_path(rest: &str) -> Option<(&str, &str)> {
    let rest = &rest[..rest.find(['?', '#']).unwrap_or(rest.len())];
    let (authority, path) = rest.split_once('/')?;
    let has_plain_port = authority
        .rsplit_once(':')
        .is_none_or(|(_, port)| port.ends_with(']') || port.bytes().all(|byte| byte.is_ascii_digit()));
    if has_plain_port || authority.contains('@') {
        return Some((authority, path));
    }
    // A password with a slash in it: what looks like a port is none.
    match rest.rsplit_once('@') {
        Some((_, place)) => place.split_once('/'),
        None => Some((authority, path)),
    }
}

/// `user@host:path`; a single letter before the colon is a Windows drive, a slash before it a path.
fn scp_form(url: &str) -> Option<(&str, &str)> {
    let (host, path) = url.split_once(':')?;
    (host.len() > 1 && !host.contains(['/', '\\'])).then_some((host, path))
}

fn canonical(host: &str) -> &str {
    let known = OTHER_NAMES.iter().find(|(name, _)| *name == host).map_or(host, |(_, host)| host);
    // Who has several accounts calls the host `github.com-work` in the SSH configuration.
    let is_account = |name: &&&str| known.strip_prefix(**name).is_some_and(|rest| rest.starts_with('-'));
    CASELESS_HOSTS.iter().find(is_account).copied().unwrap_or(known)
}

/// `v3/organisation/project/repository` over SSH is `organisation/project/_git/repository` over HTTPS.
fn azure_path(path: &str) -> String {
    match path.split('/').collect::<Vec<_>>()[..] {
        ["v3", organisation, project, repository] => format!("{organisation}/{project}/_git/{repository}"),
        _ => path.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(urls: &[&str], expected: &str) {
        for url in urls {
            assert_eq!(normalise(url).as_deref(), Some(expected), "{url}");
        }
    }

    #[test]
    fn spells_every_form_alike() {
        let urls = [
            "git@example.com:acme/widgets.git",
            "ssh://git@example.com/acme/widgets.git",
            "ssh://git@example.com:22/acme/widgets",
            "git+ssh://git@example.com/acme/widgets.git",
            "https://example.com/acme/widgets.git",
            "https://user:secret@EXAMPLE.com/acme/widgets/",
            "https://user:se/cr:et@example.com/acme/widgets",
            "HTTPS://example.com:443/acme//widgets.git/",
            "https://example.com/acme/widgets?private_token=x",
            "http://example.com:80/acme/widgets",
            "git://example.com/acme/widgets",
            "helper::https://u:p@example.com/acme/widgets",
            "example.com:acme/widgets",
            "example.com:/acme/widgets.git",
        ];
        check(&urls, "example.com/acme/widgets");
    }

    #[test]
    fn knows_the_other_doors_of_known_hosts_and_that_case_means_nothing_there() {
        check(
            &["git@github.com:Acme/Widgets.git", "ssh://git@ssh.github.com:443/acme/widgets"],
            "github.com/acme/widgets",
        );
    }

    #[test]
    fn takes_no_path_for_a_host() {
        for url in ["/srv/git/widgets.git", "../widgets", "file:///srv/git/widgets", "C:\\src\\widgets", ""] {
            assert_eq!(normalise(url), None, "{url}");
        }
    }

    #[test]
    fn keeps_a_port_that_is_not_the_default() {
        check(&["ssh://git@example.com:2222/a/b"], "example.com:2222/a/b");
    }
}
