//! What a command runs, each program on a line of its own and in one spelling: `sudo /usr/bin/git -C /w push -f` and
//! `sh -c "git push --force"` both run `git push --force`. Reads what a shell would run, as far as that can be told without running
//! it: what another command named, a function, and what a script holds are not known.

use super::commands::{INTERPRETING, WITH_SUBCOMMANDS, is_in};
use super::flags;
use super::inner::{executed, handed_on, in_container, remote, script};
use super::running::{Named, is_assignment, name_of, running};
use super::steps::steps;

/// A program that a command runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Line {
    /// The program and its arguments, without what only runs it.
    pub(crate) written: String,
    /// The same with the long names of its flags, in the order of the alphabet and before its other arguments.
    pub(crate) spelt: String,
    /// What it is given beside that and no pattern sees: the variables that were set before it, and whether `--` ends its flags.
    pub(crate) given: String,
}

/// Commands within commands are looked into so deep.
const MAX_DEPTH: usize = 4;
/// A command of more programs than this is a script: its beginning is looked at.
const MAX_LINES: usize = 200;

/// All programs that a command runs, in their order, those of its inner commands too. What it prints, comments and quotes are none.
pub(crate) fn lines(command: &str) -> Vec<Line> {
    let mut lines = Vec::new();
    collect(command, 0, &mut lines);
    lines.truncate(MAX_LINES);
    lines
}

fn collect(command: &str, depth: usize, lines: &mut Vec<Line>) {
    if depth > MAX_DEPTH || lines.len() > MAX_LINES {
        return;
    }
    let mut printed: Option<String> = None;
    let mut named = Named::default();
    let mut given = String::new();
    for step in steps(command) {
        if lines.len() > MAX_LINES {
            return;
        }
        for inner in &step.inner {
            collect(inner, depth + 1, lines);
        }
        let words = named.replaced(&step.words);
        named.learn(&words);
        let all = words;
        let words = running(&all);
        for word in all[..all.len() - words.len()].iter().filter(|word| is_assignment(word)) {
            given.push_str(word);
            given.push(' ');
        }
        let name = words.first().map(|word| name_of(word)).unwrap_or_default();
        let rest = words.get(1..).unwrap_or_default();
        if is_in(SHELLS, name) {
            let here_string = rest.iter().position(|word| word == "<<<").and_then(|at| rest.get(at + 1));
            let script = script(rest).or(step.fed.as_deref()).or(here_string.map(String::as_str));
            if let Some(script) = script.or(printed.as_deref().filter(|_| step.is_piped && rest.is_empty())) {
                collect(script, depth + 1, lines);
            }
        }
        match name {
            "bundle" | "poetry" | "uv" | "pipenv" | "npx" | "npm" | "pnpm" | "yarn" => {
                if let Some(run) = handed_on(name, rest) {
                    collect(&quoted(run), depth + 1, lines);
                }
            }
            "eval" => collect(&rest.join(" "), depth + 1, lines),
            "ssh" => collect(&remote(rest), depth + 1, lines),
            "find" => {
                for run in executed(rest) {
                    collect(&quoted(run), depth + 1, lines);
                }
            }
            "docker" | "podman" | "kubectl" => {
                if let Some(run) = in_container(rest) {
                    collect(&quoted(run), depth + 1, lines);
                }
            }
            _ => {}
        }
        printed = ["echo", "printf"].contains(&name).then(|| rest.join(" "));
        if let Some(line) = line(words) {
            let end = if rest.iter().any(|word| word == "--") { "--" } else { "" };
            lines.push(Line { given: format!("{given}{end}"), ..line });
        }
        lines.extend(step.redirected_to.iter().filter(|path| !path.starts_with("/dev/")).map(|path| {
            let line = format!("> {path}");
            Line { written: line.clone(), spelt: line, given: String::new() }
        }));
    }
}

/// What runs the commands that it is given.
const SHELLS: &str = "sh bash zsh dash ksh fish";

/// Words that are cut already, as a command that is cut into the same.
fn quoted(words: &[String]) -> String {
    let quoted = words.iter().map(|word| format!("'{}'", word.replace('\'', r"'\''")));
    quoted.collect::<Vec<_>>().join(" ")
}

/// Before a subcommand these have values of their own.
const WITH_VALUE_BEFORE: &str = "-C -c -n -f --git-dir --work-tree --context --namespace --kubeconfig --prefix --manifest-path \
    --project-directory --profile --region --host -H";

fn line(words: &[String]) -> Option<Line> {
    let (first, rest) = words.split_first()?;
    let name = name_of(first);
    if name.is_empty() {
        return None;
    }
    let mut program = name.to_owned();
    let mut before = Vec::new();
    let mut rest = rest;
    if is_in(WITH_SUBCOMMANDS, name) {
        while let [word, after @ ..] = rest {
            if word.starts_with('+') && name == "cargo" {
                rest = after;
            } else if word.starts_with('-') && word.len() > 1 {
                let has_value = is_in(WITH_VALUE_BEFORE, word) && !after.is_empty();
                before.extend_from_slice(&rest[..=usize::from(has_value)]);
                rest = &after[usize::from(has_value)..];
            } else {
                program.push(' ');
                program.push_str(flags::subcommand(name, word));
                rest = after;
                if !(is_in(LEADING, word) || name == "docker" && is_in("volume system container image network", word)) {
                    break;
                }
            }
        }
        if program == "docker-compose" || program.starts_with("docker-compose ") {
            program = program.replacen("docker-compose", "docker compose", 1);
        }
    } else if is_in(INTERPRETING, name) && rest.first().is_some_and(|word| word == "-m") && rest.len() > 1 {
        // `python -m pip install` is `pip install`.
        return line(&rest[1..]);
    }
    let written =
        std::iter::once(program.as_str()).chain(rest.iter().map(String::as_str)).collect::<Vec<_>>().join(" ");
    let (mut flags, mut others) = (before_flags(&before), Vec::new());
    let mut rest = rest.iter();
    while let Some(word) = rest.next() {
        if word == "--" {
            others.extend(rest.by_ref().map(String::as_str));
        } else if word.starts_with("--") {
            flags.push(word.clone());
        } else if let Some(letters) = word.strip_prefix('-').filter(|letters| !letters.is_empty()) {
            spell(&program, letters, &mut rest, &mut flags);
        } else {
            others.push(word);
        }
    }
    flags.sort();
    flags.dedup();
    let words = std::iter::once(program.as_str()).chain(flags.iter().map(String::as_str)).chain(others);
    Some(Line { written, spelt: words.collect::<Vec<_>>().join(" "), given: String::new() })
}

/// Subcommands that lead to one that says what is done.
const LEADING: &str = "compose run exec";

fn before_flags(words: &[String]) -> Vec<String> {
    let mut flags: Vec<String> = Vec::new();
    for word in words {
        match flags.last_mut() {
            Some(flag) if !word.starts_with('-') => *flag = format!("{flag}={word}"),
            _ => flags.push(word.clone()),
        }
    }
    flags
}

/// Spells the letters of one word out, if all are known up to one that has a value.
fn spell<'a>(program: &str, letters: &str, rest: &mut impl Iterator<Item = &'a String>, flags: &mut Vec<String>) {
    let mut spelt = Vec::new();
    for (at, letter) in letters.char_indices() {
        let Some(flag) = flags::of_letter(program, letter) else {
            flags.push(format!("-{letters}"));
            return;
        };
        if flag.has_value {
            let here = &letters[at + letter.len_utf8()..];
            let value = if here.is_empty() { rest.next().map_or("", String::as_str) } else { here };
            spelt.push(format!("--{}={value}", flag.long));
            break;
        }
        spelt.push(format!("--{}", flag.long));
    }
    flags.extend(spelt);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(command: &str, expected: &[&str]) {
        let spelt: Vec<_> = lines(command).into_iter().map(|line| line.spelt).collect();
        assert_eq!(spelt, expected, "{command}");
    }

    #[test]
    fn spells_one_program_in_one_way() {
        let push = "git push --force origin main";
        for command in [
            "git push --force origin main",
            "git push -f origin main",
            "git push origin main -f",
            "/usr/bin/git push origin main --force",
            "git push 'origin' \"main\" --force  # now",
            "GIT_SSH=x sudo -u me git push -f origin main",
            "if true; then git push -f origin main; fi",
            "timeout 60 nice -n 5 git push -f origin main",
        ] {
            let lines = lines(command);
            assert!(lines.iter().any(|line| line.spelt == push), "{command}: {lines:?}");
        }
        check("git -C /w push -f", &["git push --force -C=/w"]);
        check("rm -fr build", &["rm --force --recursive build"]);
        check("rm -r -f build", &["rm --force --recursive build"]);
        check("docker-compose down -v", &["docker compose down --volumes"]);
        check("npm i -g left-pad", &["npm install --global left-pad"]);
        check("python3.12 -m pip install -U x", &["pip install --upgrade x"]);
        check("git commit -am 'git push --force'", &["git commit --all --message=git push --force"]);
        check("tar -xzf a.tgz", &["tar -xzf a.tgz"]);
    }

    #[test]
    fn looks_into_commands_within_commands() {
        let push = "git push --force";
        for command in [
            "sh -c 'git push -f'",
            "bash -lc \"cd /w && git push --force\"",
            "echo $(git push -f)",
            "x=\"`git push -f`\"",
            "eval 'git push -f'",
            "ssh -p 22 host git push -f",
            "bash <<'EOF'\ngit push -f\nEOF",
            "echo git push -f | sh",
            "cat list | xargs -n 1 git push -f",
            "find . -name x -exec git push -f ';'",
            "docker exec -it box git push -f",
            "cat <(git push -f)",
            "(cd app; git push -f)",
            "bash <<< 'git push -f'",
            "F=-f; git push $F",
            "export P='git push'; $P --force",
            "alias p='git push --force'; p",
            "bundle exec git push -f",
        ] {
            assert!(lines(command).iter().any(|line| line.spelt.starts_with(push)), "{command}: {:?}", lines(command));
        }
    }

    #[test]
    fn what_is_only_said_is_no_program() {
        for command in [
            "echo 'git push --force'",
            "# git push --force\nls",
            "git commit -m 'undo git push --force'",
            "cat > notes.md <<'EOF'\ngit push --force\nEOF",
            "grep -rn 'git push --force' docs",
            "printf '%s' \"$(date) git push --force\"",
        ] {
            assert!(!lines(command).iter().any(|line| line.spelt.starts_with("git push")), "{command}");
        }
    }

    #[test]
    fn names_the_files_that_output_goes_to() {
        check("echo A=1 > .env", &["echo A=1", "> .env"]);
        check("cargo test 2>/dev/null", &["cargo test"]);
    }
}
