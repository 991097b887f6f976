//! A shell command cut into the programs that it runs, each with its words. A reading of what agents write, not a shell: what it does
//! not understand it takes for words.

/// One program with its arguments.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Step {
    pub(crate) words: Vec<String>,
    /// Files that its output goes to.
    pub(crate) redirected_to: Vec<String>,
    /// Whether it reads what the one before it wrote.
    pub(crate) is_piped: bool,
    /// Commands that are run for what they print: `$(date)`, `<(ls)`.
    pub(crate) inner: Vec<String>,
    /// What is fed to it by `<<`.
    pub(crate) fed: Option<String>,
    /// Where it begins and ends in the command, in bytes.
    pub(crate) start: usize,
    pub(crate) end: usize,
}

impl Step {
    fn is_empty(&self) -> bool {
        self.words.is_empty() && self.redirected_to.is_empty()
    }
}

/// The programs of a command in their order. Quotes hold words together; comments, and what is fed to a program by `<<`, are none of its
/// words.
pub(crate) fn steps(command: &str) -> Vec<Step> {
    /// What is longer is a file that is written or a program that is fed.
    const MAX_BYTES: usize = 64 * 1024;
    let command = &command[..command.floor_char_boundary(MAX_BYTES)];
    let mut reader = Reader::default();
    let mut rest = command.char_indices().peekable();
    while let Some((at, c)) = rest.next() {
        match (reader.quote, c) {
            (Some(quote), _) if c == quote => reader.quote = None,
            (Some('"') | None, '\\') => {
                if let Some((_, escaped)) = rest.next().filter(|(_, escaped)| *escaped != '\n') {
                    reader.push(at, escaped);
                }
            }
            (None | Some('"'), '$' | '`' | '<') if substitution(command, at, reader.quote).is_some() => {
                let Some((inner, end)) = substitution(command, at, reader.quote) else { continue };
                reader.push_all(at, &command[at..end]);
                reader.step.inner.push(inner.to_owned());
                while rest.next_if(|(at, _)| *at < end).is_some() {}
            }
            (None, '#') if reader.word.is_none() => while rest.next_if(|(_, next)| *next != '\n').is_some() {},
            (None, '\'' | '"') => {
                reader.quote = Some(c);
                reader.begin(at);
            }
            (None, '>') => {
                reader.end_word_before_redirection();
                while rest.next_if(|(_, next)| *next == '>' || *next == '|').is_some() {}
                if rest.next_if(|(_, next)| *next == '&').is_some() {
                    while rest.next_if(|(_, next)| next.is_ascii_digit() || *next == '-').is_some() {}
                } else {
                    reader.is_redirecting = true;
                }
            }
            (None, '<') if command[at..].starts_with("<<<") => {
                reader.end_word();
                reader.push_all(at, "<<<");
                reader.end_word();
                rest.next();
                rest.next();
            }
            (None, '<') if command[at..].starts_with("<<") => {
                reader.end_word();
                rest.next();
                reader.here_documents.push(terminator(&command[at + 2..]));
                reader.fed_at = Some(reader.steps.len());
                reader.is_terminator_next = true;
            }
            (None, '\n') => {
                reader.end_step(at);
                for terminator in std::mem::take(&mut reader.here_documents) {
                    let start = rest.peek().map_or(command.len(), |(at, _)| *at);
                    let end = end_of_here_document(command, start, &terminator);
                    while rest.next_if(|(at, _)| *at < end).is_some() {}
                    // Of several programs in one line it is the first that is fed, mostly the only one.
                    if let Some(step) = reader.fed_step() {
                        step.fed.get_or_insert_with(|| command[start..end].to_owned());
                    }
                }
            }
            (None, ';' | '|' | '&') => {
                let is_pipe = c == '|' && rest.next_if(|(_, next)| *next == '|').is_none();
                if c == '&' {
                    rest.next_if(|(_, next)| *next == '&');
                }
                reader.end_step(at);
                reader.step.is_piped = is_pipe;
            }
            (None, ')') if reader.is_in_subshell() => reader.end_step(at),
            (None, '(' | ')' | '{' | '}' | '`') if reader.word.is_none() => {}
            (None, _) if c.is_whitespace() => reader.end_word(),
            (Some(_) | None, _) => reader.push(at, c),
        }
    }
    reader.end_step(command.len());
    reader.steps
}

/// The command that is run at this place for what it prints, and where that ends: `$(…)`, `` `…` `` and, outside of quotes, `<(…)`.
fn substitution(command: &str, at: usize, quote: Option<char>) -> Option<(&str, usize)> {
    /// One that is longer is taken for words: looking for the end of each of many that never end would take long.
    const MAX_CHARS: usize = 4_096;
    let rest = &command[at..];
    if let Some(after) = rest.strip_prefix('`') {
        let length = after.char_indices().take(MAX_CHARS).find(|(_, c)| *c == '`')?.0;
        return Some((&after[..length], at + length + 2));
    }
    let is_open = rest.starts_with("$(") || quote.is_none() && rest.starts_with("<(");
    let mut depth = 0_usize;
    let mut inner_quote = None;
    for (place, c) in rest.char_indices().skip(1).take(MAX_CHARS).take_while(|_| is_open) {
        match (inner_quote, c) {
            (Some(quote), _) if c == quote => inner_quote = None,
            (None, '\'' | '"') => inner_quote = Some(c),
            (None, '(') => depth += 1,
            (None, ')') => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return Some((&rest[2..place], at + place + 1));
        }
    }
    None
}

/// What stands after `<<`: the line that ends what is fed in.
fn terminator(after: &str) -> String {
    let word = after.trim_start_matches('-').trim_start();
    let end = word.find(|c: char| c.is_whitespace() || ";|&<>".contains(c)).unwrap_or(word.len());
    word[..end].trim_matches(['\'', '"', '\\']).to_owned()
}

fn end_of_here_document(command: &str, from: usize, terminator: &str) -> usize {
    let mut at = from;
    for line in command[from..].split_inclusive('\n') {
        at += line.len();
        if line.trim() == terminator {
            return at;
        }
    }
    command.len()
}

#[derive(Default)]
struct Reader {
    steps: Vec<Step>,
    step: Step,
    word: Option<String>,
    quote: Option<char>,
    is_redirecting: bool,
    is_terminator_next: bool,
    here_documents: Vec<String>,
    /// Which step the next here-document is fed to.
    fed_at: Option<usize>,
}

impl Reader {
    fn begin(&mut self, at: usize) {
        if self.step.is_empty() && self.word.is_none() {
            self.step.start = at;
        }
        self.word.get_or_insert_default();
    }

    fn push(&mut self, at: usize, c: char) {
        self.begin(at);
        self.word.get_or_insert_default().push(c);
    }

    /// Whether a `)` ends commands, and is no part of a word such as `a(b)`.
    fn is_in_subshell(&self) -> bool {
        self.word.as_ref().is_some_and(|word| !word.contains('('))
    }

    fn push_all(&mut self, at: usize, text: &str) {
        self.begin(at);
        self.word.get_or_insert_default().push_str(text);
    }

    fn fed_step(&mut self) -> Option<&mut Step> {
        self.fed_at.and_then(|at| self.steps.get_mut(at))
    }

    fn end_word(&mut self) {
        let Some(word) = self.word.take() else { return };
        if std::mem::take(&mut self.is_terminator_next) {
            return;
        }
        let words =
            if std::mem::take(&mut self.is_redirecting) { &mut self.step.redirected_to } else { &mut self.step.words };
        words.push(word);
    }

    /// In `2>` the number is which output, not a word.
    fn end_word_before_redirection(&mut self) {
        if self.word.as_ref().is_some_and(|word| !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_digit())) {
            self.word = None;
        }
        self.end_word();
    }

    fn end_step(&mut self, at: usize) {
        self.end_word();
        self.is_redirecting = false;
        let mut step = std::mem::take(&mut self.step);
        if !step.is_empty() {
            step.end = at;
            self.steps.push(step);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_never_ends_takes_no_time_and_loses_nothing() {
        let started = std::time::Instant::now();
        let command = format!("echo {}", "$(".repeat(8_000));
        assert_eq!(steps(&command).len(), 1);
        assert!(started.elapsed().as_secs() < 5, "{:?}", started.elapsed());
        assert_eq!(steps("echo `date").len(), 1);
        assert_eq!(steps("echo $(ls \"a)\" (b)) c")[0].inner, ["ls \"a)\" (b)"]);
    }
}
