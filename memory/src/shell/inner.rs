//! Commands within commands: what a program is given to run by its arguments.

use super::commands::is_in;

/// What `sh -c` and its like are given to run.
pub(super) fn script(words: &[String]) -> Option<&str> {
    let at = words.iter().position(|word| word.starts_with('-') && !word.starts_with("--") && word.ends_with('c'))?;
    words.get(at + 1).map(String::as_str)
}

/// What follows the host.
pub(super) fn remote(words: &[String]) -> String {
    const WITH_VALUE: &str = "-p -i -l -o -F -J -L -R -D -b -c -E -m -S -W -w";
    let mut words = words;
    while let [word, rest @ ..] = words {
        if !word.starts_with('-') {
            return rest.join(" ");
        }
        words = if is_in(WITH_VALUE, word) { rest.get(1..).unwrap_or_default() } else { rest };
    }
    String::new()
}

/// What `find` runs for what it finds.
pub(super) fn executed(words: &[String]) -> Vec<&[String]> {
    let mut runs = Vec::new();
    let mut words = words;
    while let Some(at) = words.iter().position(|word| ["-exec", "-execdir", "-ok"].contains(&word.as_str())) {
        let run = &words[at + 1..];
        let end = run.iter().position(|word| [";", "+"].contains(&word.as_str())).unwrap_or(run.len());
        runs.push(&run[..end]);
        words = &run[end..];
    }
    runs
}

/// What a package manager runs in its surroundings: `bundle exec rails`.
pub(super) fn handed_on<'a>(name: &str, words: &'a [String]) -> Option<&'a [String]> {
    let (first, rest) = words.split_first()?;
    let run = match (name, first.as_str()) {
        ("npx", _) => words,
        ("bundle" | "npm" | "pnpm" | "yarn", "exec") | ("poetry" | "uv" | "pipenv", "run") => rest,
        _ => return None,
    };
    let start = run.iter().position(|word| !word.starts_with('-'))?;
    Some(&run[start..])
}

/// What is run in a container that is there.
pub(super) fn in_container(words: &[String]) -> Option<&[String]> {
    const WITH_VALUE: &str = "-e -u -w -n -c --env --user --workdir --namespace --container --env-file";
    let at = words.iter().position(|word| word == "exec")?;
    let mut words = &words[at + 1..];
    while let [word, rest @ ..] = words {
        if !word.starts_with('-') {
            let run = rest.strip_prefix(&["--".to_owned()]).unwrap_or(rest);
            return (!run.is_empty()).then_some(run);
        }
        words = if is_in(WITH_VALUE, word) { rest.get(1..).unwrap_or_default() } else { rest };
    }
    None
}
