//! A hook's command as one line for a shell, and reading such a line back.

/// How a line is written for the shell that takes it apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Quoting {
    Posix,
    Cmd,
    PowerShell,
}

impl Quoting {
    /// The shell that runs the line here: `sh`, or on Windows the one that this agent uses there.
    pub(super) fn here(on_windows: Self) -> Self {
        if cfg!(windows) { on_windows } else { Self::Posix }
    }

    /// The program with its arguments, which are words without blanks or quotes.
    pub(super) fn line(self, program: &str, arguments: &[&str]) -> String {
        let arguments = arguments.join(" ");
        match self {
            Self::Posix => format!("'{}' {arguments}", program.replace('\'', r"'\''")),
            // Whichever shell it is, it understands a plain path; where there must be quotes, each wants its own.
            _ if program.chars().all(is_plain) => format!("{program} {arguments}"),
            Self::Cmd => format!("\"{program}\" {arguments}"),
            Self::PowerShell => format!("& '{}' {arguments}", program.replace('\'', "''")),
        }
    }
}

fn is_plain(character: char) -> bool {
    character.is_ascii_alphanumeric() || matches!(character, ':' | '\\' | '/' | '.' | '_' | '-' | '~')
}

/// A command's own program and the words behind it. In exec form the whole command is the program, blanks and all.
pub(super) fn split(command: &str, program_name: &str) -> (String, Vec<String>) {
    let is_path = command.starts_with('/') || command.chars().nth(1) == Some(':');
    if is_path && file_name(command) == program_name {
        return (command.to_owned(), Vec::new());
    }
    let line = command.strip_prefix("& ").unwrap_or(command);
    let mut program = String::new();
    let mut quote = None;
    let mut characters = line.char_indices().peekable();
    let mut end = line.len();
    while let Some((index, character)) = characters.next() {
        match (quote, character) {
            (Some(open), close) if open == close => {
                // PowerShell doubles a quote inside quotes.
                if open == '\'' && characters.next_if(|(_, next)| *next == '\'').is_some() {
                    program.push('\'');
                } else {
                    quote = None;
                }
            }
            (None, '"' | '\'') => quote = Some(character),
            (None, '\\') if characters.next_if(|(_, next)| *next == '\'').is_some() => program.push('\''),
            (None, character) if character.is_whitespace() => {
                end = index;
                break;
            }
            (_, character) => program.push(character),
        }
    }
    (program, line[end..].split_whitespace().map(str::to_owned).collect())
}

/// Whether a command's own program is the one of that name: a bare name or a path, quoted or not, with or without arguments
/// behind it. A command that only mentions it is somebody's own.
pub(super) fn names_program(command: &str, name: &str) -> bool {
    file_name(&split(command, name).0) == name
}

fn file_name(program: &str) -> &str {
    let file = program.rsplit(['/', '\\']).next().unwrap_or_default();
    file.strip_suffix(".exe").unwrap_or(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAME: &str = "agent-memory-hook";

    #[track_caller]
    fn check(quoting: Quoting, program: &str, line: &str) {
        assert_eq!(quoting.line(program, &["codex", "Stop"]), line);
        assert_eq!(split(line, NAME), (program.to_owned(), vec!["codex".to_owned(), "Stop".to_owned()]));
        assert!(names_program(line, NAME));
    }

    #[test]
    fn quotes_a_path_as_the_shell_wants_it_and_reads_it_back() {
        check(Quoting::Posix, "/a b/agent-memory-hook", "'/a b/agent-memory-hook' codex Stop");
        check(Quoting::Posix, "/o'b/agent-memory-hook", r"'/o'\''b/agent-memory-hook' codex Stop");
        check(Quoting::Posix, "/$HOME/`x`/agent-memory-hook", "'/$HOME/`x`/agent-memory-hook' codex Stop");
        check(Quoting::Cmd, r"C:\am\agent-memory-hook.exe", r"C:\am\agent-memory-hook.exe codex Stop");
        check(Quoting::Cmd, r"C:\a b\agent-memory-hook.exe", r#""C:\a b\agent-memory-hook.exe" codex Stop"#);
        check(Quoting::PowerShell, r"C:\a b\agent-memory-hook.exe", r"& 'C:\a b\agent-memory-hook.exe' codex Stop");
        check(Quoting::PowerShell, r"C:\o'b\agent-memory-hook.exe", r"& 'C:\o''b\agent-memory-hook.exe' codex Stop");
    }

    #[cfg(unix)]
    #[test]
    fn a_real_shell_takes_the_line_apart_as_meant() {
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join("it's $HOME `a` \"b\"");
        std::fs::write(&program, "#!/bin/sh\nprintf '%s|' \"$@\"\n").unwrap();
        std::fs::set_permissions(&program, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        let line = Quoting::Posix.line(program.to_str().unwrap(), &["codex", "Stop"]);
        #[allow(clippy::disallowed_methods, reason = "the shell itself is what is tested")]
        let output = std::process::Command::new("sh").args(["-c", &line]).output().unwrap();
        assert_eq!(String::from_utf8_lossy(&output.stdout), "codex|Stop|", "{line}");
    }

    #[test]
    fn takes_no_other_program_for_ours() {
        assert!(names_program("/a b/agent-memory-hook", NAME));
        assert!(names_program("\"C:\\a\\agent-memory-hook.exe\" x", NAME));
        assert!(names_program("agent-memory-hook claude-code Stop", NAME));
        for somebodys in
            ["timeout 1 /x/agent-memory-hook a", "tee log | agent-memory-hook", "pgrep -f agent-memory-hook"]
        {
            assert!(!names_program(somebodys, NAME), "{somebodys}");
        }
        assert!(!names_program("/a/agent-memory-hooks", NAME));
        assert!(!names_program("/a/my-agent-memory-hook", NAME));
        assert!(!names_program("/agent-memory-hook/other", NAME));
    }
}
