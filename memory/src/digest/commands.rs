//! Which commands of a shell are the same work: `cd x && RUST_LOG=debug cargo test -q 2>&1 | tail` and `cargo test`.

/// What a command line does, as far as two of them can be compared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Command {
    program: String,
    /// The words after it that are no flags, as far as they say what is done.
    target: Vec<String>,
}

/// Programs that run the one named after them.
const WRAPPERS: [&str; 7] = ["sudo", "time", "env", "timeout", "npx", "nice", "nohup"];
/// What only prepares for the command that matters.
const PREPARING: [&str; 9] = ["cd", "export", "set", "source", ".", "echo", "true", "sleep", "pushd"];
/// Looking for something and not finding it is no failure that stays open.
const LOOKING: [&str; 17] = [
    "cat", "diff", "file", "find", "grep", "head", "less", "ls", "pgrep", "ps", "rg", "stat", "tail", "test", "wc",
    "which", "[",
];
/// Words after which the next one says what is done.
const LEADING: [&str; 3] = ["run", "exec", "-m"];

impl Command {
    /// Reads the first command of a line that does more than prepare; `None` if there is none.
    pub(super) fn parse(line: &str) -> Option<Self> {
        let parts = line.split(['\n', ';']).flat_map(|part| part.split("&&")).flat_map(|part| part.split("||"));
        let mut commands = parts.filter_map(|part| Self::parse_one(part.split('|').next().unwrap_or_default()));
        let first = commands.next()?;
        if !first.only_prepares() {
            return Some(first);
        }
        Some(commands.find(|command| !command.only_prepares()).unwrap_or(first))
    }

    fn parse_one(text: &str) -> Option<Self> {
        let mut words = text.split_whitespace().map(|word| word.trim_matches(['"', '\'', '(', ')'])).filter(|word| {
            let is_assignment = word.split_once('=').is_some_and(|(name, _)| {
                !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
            });
            !word.is_empty() && !is_assignment
        });
        let mut program = words.next()?;
        while WRAPPERS.contains(&program) {
            program = words.find(|word| !word.starts_with('-') && !word.starts_with(|c: char| c.is_ascii_digit()))?;
        }
        let program = program.rsplit('/').next().unwrap_or(program).to_owned();
        let mut target = Vec::new();
        for word in words {
            let leads = LEADING.contains(&word);
            if word.contains('>') || word.contains('<') {
                break;
            }
            if leads || !word.starts_with('-') {
                target.push(word.to_owned());
                if !leads {
                    break;
                }
            }
        }
        Some(Self { program, target })
    }

    fn only_prepares(&self) -> bool {
        PREPARING.contains(&&*self.program)
    }

    pub(super) fn only_looks(&self) -> bool {
        LOOKING.contains(&&*self.program) || self.only_prepares()
    }

    /// Whether its success says that what failed works now: the same work, or all of it.
    pub(super) fn makes_good(&self, failed: &Self) -> bool {
        self.program == failed.program && (self.target == failed.target || self.target.is_empty())
    }
}

/// The line of an error that says most: one that names an error, else the first after the exit code.
pub(super) fn telling_line(error: &str) -> String {
    const MAX_CHARS: usize = 160;
    const TELLING: [&str; 6] = ["error", "panicked", "failed", "exception", "fatal", "not found"];
    let lines = || {
        error
            .lines()
            .map(str::trim)
            .filter(|line| !line.is_empty() && !line.to_ascii_lowercase().starts_with("exit code"))
    };
    let tells = |line: &&str| {
        let lower = line.to_ascii_lowercase();
        TELLING.iter().any(|word| lower.contains(word))
    };
    let line = lines().find(tells).or_else(|| lines().next()).or_else(|| error.lines().next()).unwrap_or_default();
    line.chars().take(MAX_CHARS).collect()
}

/// `[main 1a2b3c4] Message` of what `git commit` prints.
pub(super) fn commit_of(output: &str) -> Option<String> {
    output.lines().find_map(|line| {
        let (place, message) = line.trim().strip_prefix('[')?.split_once("] ")?;
        let sha = place.split_whitespace().last()?;
        let is_sha = sha.len() >= 7 && sha.chars().all(|c| c.is_ascii_hexdigit());
        is_sha.then(|| format!("{sha} {}", message.trim()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(line: &str, program: &str, target: &[&str]) {
        let parsed = Command::parse(line).unwrap();
        assert_eq!((parsed.program.as_str(), parsed.target.join(" ")), (program, target.join(" ")), "{line}");
    }

    #[test]
    fn finds_the_command_that_matters() {
        check("cargo test -p memory", "cargo", &["test"]);
        check("cd /srv/w && RUST_LOG=debug cargo test 2>&1 | tail -5", "cargo", &["test"]);
        check("timeout 60 npm run build -- --watch", "npm", &["run", "build"]);
        check("python -m pytest -q tests/a.py", "python", &["-m", "pytest"]);
        check("./scripts/check.sh > log", "check.sh", &[]);
        check("cd /srv", "cd", &["/srv"]);
        assert_eq!(Command::parse("  \n"), None);
    }

    #[test]
    fn the_whole_makes_good_its_part_and_not_the_other_way_round() {
        let parse = |line| Command::parse(line).unwrap();
        assert!(parse("pytest -q").makes_good(&parse("pytest tests/a.py")));
        assert!(!parse("pytest tests/a.py").makes_good(&parse("pytest")));
        assert!(!parse("cargo build").makes_good(&parse("cargo test")));
    }

    #[test]
    fn takes_the_line_of_an_error_that_names_it() {
        assert_eq!(
            telling_line("Exit code 101\n  Compiling x\nerror[E0308]: mismatched types\n"),
            "error[E0308]: mismatched types"
        );
        assert_eq!(telling_line("Exit code 2\nno rule to make target"), "no rule to make target");
        assert_eq!(telling_line("Exit code 1"), "Exit code 1");
    }
}
