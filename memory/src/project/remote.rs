//! One spelling for all the ways in which a remote can be written: `host/path`, without scheme, user, password, port's
//! default or `.git`.

/// `None` for a remote that names no host (a local path or a bundle): such a repository is known by its own folder.
pub(super) fn normalise(url: &str) -> Option<String> {
    let url = url.trim();
    let (host_and_user, path) = match url.split_once("://") {
        Some((scheme, rest)) if scheme != "file" => rest.split_once('/')?,
        Some(_) => return None,
        None => scp_form(url)?,
    };
    let host = host_and_user.rsplit_once('@').map_or(host_and_user, |(_, host)| host).to_lowercase();
    let host = ["22", "80", "443"].iter().find_map(|port| host.strip_suffix(&format!(":{port}"))).unwrap_or(&host);
    let path = path.trim_matches('/');
    let path = path.strip_suffix(".git").unwrap_or(path);
    (!host.is_empty() && !path.is_empty()).then(|| format!("{host}/{path}"))
}

/// `user@host:path`; a single letter before the colon is a Windows drive, a slash before it a path.
fn scp_form(url: &str) -> Option<(&str, &str)> {
    let (host, path) = url.split_once(':')?;
    (host.len() > 1 && !host.contains(['/', '\\'])).then_some((host, path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spells_every_form_alike() {
        for url in [
            "git@example.com:acme/widgets.git",
            "ssh://git@example.com/acme/widgets.git",
            "ssh://git@example.com:22/acme/widgets",
            "https://example.com/acme/widgets.git",
            "https://user:secret@EXAMPLE.com/acme/widgets/",
            "http://example.com:80/acme/widgets",
            "git://example.com/acme/widgets",
            "example.com:acme/widgets",
        ] {
            assert_eq!(normalise(url).as_deref(), Some("example.com/acme/widgets"), "{url}");
        }
    }

    #[test]
    fn takes_no_path_for_a_host() {
        for url in ["/srv/git/widgets.git", "../widgets", "file:///srv/git/widgets", "C:\\src\\widgets", ""] {
            assert_eq!(normalise(url), None, "{url}");
        }
    }

    #[test]
    fn keeps_a_port_that_is_not_the_default() {
        assert_eq!(normalise("ssh://git@example.com:2222/a/b").as_deref(), Some("example.com:2222/a/b"));
    }
}
