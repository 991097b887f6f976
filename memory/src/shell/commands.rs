//! What a shell command is: the programs that it runs, the files that it writes, and the command without what is only about where it
//! runs and how much of its output is shown. `steps` cuts it into words.

use serde_json::Value;

use super::steps::{Step, steps};

/// Programs of which the next word says what they do.
pub(super) const WITH_SUBCOMMANDS: &str = "\
    apt apt-get aws az brew bun bundle cargo composer conda dart deno docker docker-compose dotnet flutter gcloud gh \
    git go gradle gradlew helm just kubectl make mix mvn nix npm npx php pip pnpm podman poetry rails rake rustup \
    systemctl terraform uv yarn";
/// Subcommands that only lead to the word that says what is done.
const LEADING: &str = "run exec compose xtask x tool";
/// Programs of which the script says what they do.
pub(super) const INTERPRETING: &str = "python node ruby perl bash sh zsh tsx";
/// What runs another program.
const WRAPPERS: &str = "sudo time nohup env command exec timeout nice stdbuf";
/// What prepares or announces, and does nothing itself.
const PREPARING: &str = "cd echo export set true false sleep pwd source . printf wait pushd popd :";
/// What only looks.
const LOOKING: &str = "\
    ls cat head tail less more grep egrep rg find fd wc which file stat tree du df ps env whoami date sort uniq cut \
    awk sed jq diff nl";
const LOOKING_WITH_GIT: [&str; 8] =
    ["git status", "git log", "git diff", "git show", "git branch", "git blame", "git grep", "git ls-files"];
/// What changes, moves or removes the files that it names.
const EDITING: &str = "tee mv rm cp touch patch truncate install ln";

pub(super) fn is_in(words: &str, word: &str) -> bool {
    words.split(' ').any(|known| known == word)
}

/// The shell command that a call ran, if it ran one.
pub(crate) fn command_of(input: &Value) -> Option<String> {
    // An editor's `command` says what to do with the file that it names.
    if ["path", "file_path"].iter().any(|name| input.get(*name).is_some()) {
        return None;
    }
    let command = match input.get("command").or_else(|| input.get("cmd"))? {
        Value::String(command) => command.clone(),
        Value::Array(words) => {
            let words: Vec<_> = words.iter().filter_map(Value::as_str).collect();
            match words[..] {
                [shell, "-c" | "-lc", script] if shell.ends_with("sh") => script.to_owned(),
                _ => words.join(" "),
            }
        }
        _ => return None,
    };
    (!command.trim().is_empty() && !command.trim_start().starts_with("*** Begin Patch")).then_some(command)
}

/// The programs that do the work, each with the word that says what it does: `cargo test`, `python -m pytest`.
pub(crate) fn programs(command: &str) -> Vec<String> {
    let steps = steps(command);
    let all: Vec<_> = steps.iter().filter_map(|step| Some((step, step.program()?))).collect();
    let working: Vec<_> =
        all.iter().filter(|(step, _)| !step.prepares() && !step.looks()).map(|(_, program)| program.clone()).collect();
    if !working.is_empty() {
        return working;
    }
    let looking = all.iter().find(|(step, _)| !step.prepares()).or(all.first());
    looking.map(|(_, program)| program.clone()).into_iter().collect()
}

/// Whether two commands do the same work, however they are told to.
pub(crate) fn are_alike(one: &str, other: &str) -> bool {
    let others = programs(other);
    programs(one).iter().any(|program| others.contains(program))
}

/// Whether it changes nothing.
pub(crate) fn only_looks(command: &str) -> bool {
    steps(command).iter().all(|step| step.edited().is_empty() && (step.prepares() || step.looks()))
}

/// The command without the folder that it is run in, without what only cuts its output, and on one line where it is one.
pub(crate) fn normalised(command: &str) -> String {
    let steps = steps(command);
    let first = steps.iter().position(|step| step.name() != Some("cd")).unwrap_or_default();
    let last = steps.iter().rposition(|step| !(step.is_piped && step.looks() || step.name() == Some("echo")));
    let (Some(from), Some(to)) = (steps.get(first), last.filter(|last| *last >= first)) else {
        return command.trim().to_owned();
    };
    let mut kept = command[from.start..steps[to].end].trim();
    for ending in ["2>&1", ">/dev/null", "> /dev/null", "2>/dev/null", ";", "&&"] {
        kept = kept.strip_suffix(ending).unwrap_or(kept).trim_end();
    }
    if kept.contains('\n') { kept.to_owned() } else { kept.split_whitespace().collect::<Vec<_>>().join(" ") }
}

impl Step {
    /// The words from the program on.
    fn working_words(&self) -> &[String] {
        let mut words = &self.words[..];
        while let [first, rest @ ..] = words {
            let is_assignment = first.split_once('=').is_some_and(|(name, _)| {
                !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
            });
            let is_wrapper = is_in(WRAPPERS, first) && !rest.is_empty();
            if !is_assignment && !is_wrapper {
                break;
            }
            words = rest;
            // `timeout 60`, `nice -n 5`, `sudo -u postgres`.
            while is_wrapper && words.len() > 2 && words[0].starts_with(|c: char| c == '-' || c.is_ascii_digit()) {
                let has_value = ["-u", "-g", "-n", "-s"].contains(&words[0].as_str());
                words = &words[1 + usize::from(has_value)..];
            }
        }
        words
    }

    fn name(&self) -> Option<&str> {
        let name = self.working_words().first()?;
        let name = name.rsplit(['/', '\\']).next().unwrap_or(name);
        // `python3.12` is `python`.
        let plain = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
        Some(if ["python", "pip"].contains(&plain) { plain } else { name })
    }

    /// The program, and the word that says what it does.
    fn program(&self) -> Option<String> {
        let name = self.name()?;
        let mut program = name.to_owned();
        let mut rest = self.working_words()[1..].iter().map(String::as_str).peekable();
        if is_in(INTERPRETING, name) {
            while let Some(word) = rest.next() {
                if word == "-m" || !word.starts_with('-') {
                    let what = if word == "-m" { rest.next()? } else { word };
                    program.push(' ');
                    program.push_str(what.rsplit('/').next().unwrap_or(what));
                    break;
                }
            }
            return Some(program);
        }
        if !is_in(WITH_SUBCOMMANDS, name) {
            return Some(program);
        }
        while let Some(word) = rest.next() {
            if word.starts_with(['-', '+']) {
                // `git -C folder`, `make -C folder`, `kubectl -n space`: the next word is the flag's.
                if ["-C", "-c", "-n", "-f", "--manifest-path"].contains(&word) {
                    rest.next();
                }
                continue;
            }
            program.push(' ');
            program.push_str(word);
            if !is_in(LEADING, word) {
                break;
            }
        }
        Some(program)
    }

    fn prepares(&self) -> bool {
        self.name().is_none_or(|name| is_in(PREPARING, name)) && self.edited().is_empty()
    }

    fn looks(&self) -> bool {
        let is_known = |name: &str| is_in(LOOKING, name);
        let with_git = || self.program().is_some_and(|program| LOOKING_WITH_GIT.contains(&program.as_str()));
        self.edited().is_empty() && (self.name().is_some_and(is_known) || with_git())
    }

    /// Whether it gives away what is in the files that it names, and changes none.
    pub(crate) fn only_reads(&self) -> bool {
        self.looks() || self.prepares()
    }

    /// The files that it changes, as it names them.
    pub(crate) fn edited(&self) -> Vec<&str> {
        let named = || self.working_words().iter().skip(1).map(String::as_str).filter(|word| !word.starts_with('-'));
        let in_place = || {
            let short = |word: &&String| word.starts_with("-i") || word.starts_with("-p") && word.contains('i');
            self.working_words().iter().any(|word| short(&word) || word.starts_with("--in-place"))
        };
        let mut edited: Vec<&str> = match self.name() {
            Some(name) if is_in(EDITING, name) => named().collect(),
            // The first word is the script.
            Some("sed" | "perl") if in_place() => named().skip(1).collect(),
            Some("git")
                if self.program().is_some_and(|program| {
                    ["git checkout", "git restore", "git rm", "git mv", "git apply"].contains(&program.as_str())
                }) =>
            {
                named().skip(1).collect()
            }
            _ => Vec::new(),
        };
        edited.extend(self.redirected_to.iter().map(String::as_str).filter(|path| !path.starts_with("/dev/")));
        edited
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn names_the_programs_that_do_the_work() {
        for (command, expected) in [
            ("cargo test -p memory", vec!["cargo test"]),
            ("cd /w && RUST_LOG=debug cargo +nightly test 2>&1 | tail -50", vec!["cargo test"]),
            ("sudo -u postgres psql -c 'select 1; select 2'", vec!["psql"]),
            ("timeout 60 python3.12 -m pytest tests", vec!["python pytest"]),
            ("python scripts/load.py --fast", vec!["python load.py"]),
            ("npm run build && npm run lint", vec!["npm run build", "npm run lint"]),
            ("docker compose -f a.yaml up -d db", vec!["docker compose up"]),
            ("git -C /w status", vec!["git status"]),
            ("cat a.txt | grep x", vec!["cat"]),
            ("./gradlew test", vec!["gradlew test"]),
            ("echo done", vec!["echo"]),
            ("", vec![]),
        ] {
            assert_eq!(programs(command), expected, "{command}");
        }
    }

    #[test]
    fn takes_two_ways_to_run_a_program_for_alike() {
        assert!(are_alike("cargo test migration", "cd /w; cargo test migration -- --test-threads=1 | tail"));
        assert!(are_alike("python load.py", "python3 ./load.py --retry"));
        assert!(!are_alike("cargo test", "cargo fmt"));
        assert!(!are_alike("cd /w && cargo test", "cd /w && ls"));
    }

    #[test]
    fn leaves_out_where_a_command_runs_and_how_much_is_shown() {
        for (command, expected) in [
            ("cd /w/x && cargo   test  2>&1 | tail -50", "cargo test"),
            ("cargo test", "cargo test"),
            ("DATABASE_URL=x cargo test; echo $?", "DATABASE_URL=x cargo test"),
            ("cat a | grep b", "cat a"),
            ("cd /w", "cd /w"),
            ("pg_dump widgets | psql other", "pg_dump widgets | psql other"),
        ] {
            assert_eq!(normalised(command), expected, "{command}");
        }
    }

    #[test]
    fn knows_what_a_command_changes() {
        let edited = |command: &str| -> Vec<String> {
            steps(command)
                .iter()
                .flat_map(|step| step.edited().into_iter().map(str::to_owned).collect::<Vec<_>>())
                .collect()
        };
        assert_eq!(edited("sed -i 's/5432/0/' tests/db.rs"), ["tests/db.rs"]);
        assert_eq!(edited("cat > a.txt <<'EOF'\nrm -rf nothing > b\nEOF\necho x >> c.txt"), ["a.txt", "c.txt"]);
        assert_eq!(edited("rm -f a.rs && cargo test > /dev/null 2>&1"), ["a.rs"]);
        assert_eq!(edited("sed -n 1,5p a.rs; grep '>' b"), Vec::<String>::new());
        assert!(only_looks("cd /w && sed -n 1,5p a.rs | head") && only_looks("git status; ls"));
        assert!(!only_looks("cargo test") && !only_looks("echo x > y"));
    }

    #[test]
    fn finds_the_command_of_every_agent() {
        assert_eq!(command_of(&json!({"command": "ls"})).as_deref(), Some("ls"));
        assert_eq!(command_of(&json!({"cmd": ["bash", "-lc", "ls -l"]})).as_deref(), Some("ls -l"));
        assert_eq!(command_of(&json!({"command": "view", "path": "/a"})), None);
        assert_eq!(command_of(&json!({"command": "*** Begin Patch\n"})), None);
        assert_eq!(command_of(&json!({"pattern": "x"})), None);
    }
}
