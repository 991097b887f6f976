//! Values behind a name in a text: `"password": "…"`, `API_KEY=…`, `--token …`, `<secret>…</secret>`, at any depth of JSON
//! within strings of JSON. Where a name ends and a value stands is decided here; whether either is secret, in `names` and
//! `value`.

use std::ops::Range;

use super::value::Form;

const MAX_NAME_BYTES: usize = 64;
/// How far before a name the start of its line is looked for.
const MAX_INDENT_BYTES: usize = 80;
/// A value without its closing quote within this many bytes is not what it seems.
const MAX_VALUE_BYTES: usize = 16 * 1024;

#[derive(Debug, PartialEq, Eq)]
pub(super) struct Assignment<'t> {
    pub(super) name: &'t str,
    pub(super) form: Form,
    pub(super) value: Range<usize>,
}

/// Between a name and its value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Separator {
    Equals,
    Colon,
    Comma,
    Tag,
    /// Of an option: a space or `=`.
    Option,
}

struct Name {
    range: Range<usize>,
    is_quoted: bool,
    /// Nothing but indentation, `export` and the like stands before it on its line.
    opens_line: bool,
    is_option: bool,
}

/// A position in a text. All that it passes is ASCII, so that it never rests within a character.
struct Cursor<'t> {
    bytes: &'t [u8],
    at: usize,
}

/// Reads the assignment to the name that has a keyword at `keyword`.
pub(super) fn around<'t>(text: &'t str, keyword: &Range<usize>) -> Option<Assignment<'t>> {
    let bytes = text.as_bytes();
    let mut cursor = Cursor { bytes, at: keyword.end };
    let mut name = name_around(bytes, keyword)?;
    cursor.at = name.range.end;
    let separator = cursor.separator(&mut name)?;
    let (form, value) = cursor.value(&name, separator)?;
    (value.start < value.end).then(|| Assignment { name: &text[name.range], form, value })
}

fn name_around(bytes: &[u8], keyword: &Range<usize>) -> Option<Name> {
    let is_name = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
    let mut start = keyword.start;
    while start > 0 && is_name(bytes[start - 1]) && keyword.start - start < MAX_NAME_BYTES {
        start -= 1;
    }
    let mut end = keyword.end;
    while end < bytes.len() && is_name(bytes[end]) && end - keyword.end < MAX_NAME_BYTES {
        end += 1;
    }
    if end < bytes.len() && is_name(bytes[end]) {
        return None;
    }
    let mut opens_line = false;
    if start > 0 && bytes[start - 1] == b'\\' && matches!(bytes[start], b'n' | b'r' | b't') && start < keyword.start {
        opens_line = bytes[start] != b't';
        start += 1;
    }
    let dashes = bytes[start..keyword.start].iter().take_while(|byte| **byte == b'-').count();
    let before = start.checked_sub(1).map(|before| bytes[before]);
    let is_option =
        dashes > 0 && before.is_none_or(|before| before.is_ascii_whitespace() || b"\"'`[(".contains(&before));
    start += dashes;
    while end > keyword.end && bytes[end - 1] == b'-' {
        end -= 1;
    }
    let near = &bytes[start.saturating_sub(MAX_INDENT_BYTES)..start];
    let line = near.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
    let has_line_start = line > 0 || near.len() < MAX_INDENT_BYTES;
    opens_line |= has_line_start
        && near[line..].iter().all(|byte| byte.is_ascii_alphanumeric() || b" \t-._>+|\xe2\x86\x92".contains(byte));
    Some(Name { range: start..end, is_quoted: false, opens_line, is_option })
}

impl Cursor<'_> {
    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    fn peek_at(&self, ahead: usize) -> Option<u8> {
        self.bytes.get(self.at + ahead).copied()
    }

    fn skip_while(&mut self, wanted: impl Fn(u8) -> bool) -> usize {
        let start = self.at;
        while self.peek().is_some_and(&wanted) {
            self.at += 1;
        }
        self.at - start
    }

    fn skip_blanks(&mut self) -> usize {
        self.skip_while(|byte| byte == b' ' || byte == b'\t')
    }

    /// A quote with the backslashes before it, that is, its depth of JSON within strings.
    fn quote(&self) -> Option<(usize, u8)> {
        let depth = self.bytes[self.at..].iter().take(32).take_while(|byte| **byte == b'\\').count();
        let quote = self.peek_at(depth).filter(|byte| b"\"'`".contains(byte))?;
        Some((depth, quote))
    }

    fn separator(&mut self, name: &mut Name) -> Option<Separator> {
        if let Some((depth, _)) = self.quote() {
            name.is_quoted = true;
            self.at += depth + 1;
        }
        // `config["password"] = …`
        if name.is_quoted && self.peek() == Some(b']') {
            self.at += 1;
        }
        if self.peek() == Some(b'>') && name.range.start > 0 && self.bytes[name.range.start - 1] == b'<' {
            self.at += 1;
            return Some(Separator::Tag);
        }
        let blanks = self.skip_blanks();
        let separator = match self.peek() {
            Some(b'=') if name.is_option => Separator::Option,
            Some(b'=') => Separator::Equals,
            Some(b':') if self.peek_at(1) == Some(b':') => return None,
            Some(b':') => Separator::Colon,
            Some(b',') if name.is_quoted && !self.names_a_member() => Separator::Comma,
            Some(_) if self.names_a_member() => return self.member_after_name(),
            Some(_) if name.is_option && !name.is_quoted && blanks > 0 => return Some(Separator::Option),
            Some(_) if name.is_option && name.is_quoted => return None,
            _ => return None,
        };
        self.at += 1;
        // `==`, `=>`, `:=`
        self.skip_while(|byte| byte == b'=' || byte == b'>');
        if separator == Separator::Colon {
            self.skip_type();
        }
        Some(separator)
    }

    /// Whether the value stands in the next member: `"name": "DB_PASSWORD", "value": "…"`, `name="password" value="…"`, and
    /// the same in YAML.
    fn names_a_member(&self) -> bool {
        let rest = &self.bytes[self.at..self.bytes.len().min(self.at + 64)];
        let start = rest.iter().position(|byte| !b" \t\r\n,\"'\\n".contains(byte));
        start.is_some_and(|start| {
            start > 0 && rest[start..].len() > 5 && rest[start..start + 5].eq_ignore_ascii_case(b"value")
        }) || rest.get(..5).is_some_and(|word| word.eq_ignore_ascii_case(b"value"))
    }

    fn member_after_name(&mut self) -> Option<Separator> {
        self.skip_while(|byte| !byte.eq_ignore_ascii_case(&b'v'));
        self.at += "value".len();
        if let Some((depth, _)) = self.quote() {
            self.at += depth + 1;
        }
        self.skip_blanks();
        let separator = match self.peek() {
            Some(b'=') => Separator::Equals,
            Some(b':') => Separator::Colon,
            _ => return None,
        };
        self.at += 1;
        Some(separator)
    }

    /// `: &str =`, `: Option<String> =`: a type between the name and its value.
    fn skip_type(&mut self) {
        let rest = &self.bytes[self.at..self.bytes.len().min(self.at + 48)];
        let type_end = rest.windows(3).position(|window| window == b" = ");
        if let Some(end) = type_end
            && rest[..end].iter().all(|byte| byte.is_ascii_alphanumeric() || b"_&<>[]|?:. '".contains(byte))
        {
            self.at += end + 3;
        }
    }

    fn value(&mut self, name: &Name, separator: Separator) -> Option<(Form, Range<usize>)> {
        let blanks = self.skip_blanks();
        self.skip_line_end();
        self.skip_prefix();
        if let Some((depth, quote)) = self.quote() {
            self.at += depth + 1;
            let form = match separator {
                Separator::Colon if name.is_quoted => Form::Member,
                Separator::Comma => Form::Pair,
                Separator::Option => Form::Argument,
                _ => Form::Quoted,
            };
            return Some((form, self.quoted(depth, quote)));
        }
        let start = self.at;
        let is_upper_case = self.bytes[name.range.clone()].iter().all(|byte| !byte.is_ascii_lowercase());
        let is_environment = is_upper_case
            && match separator {
                Separator::Equals => blanks == 0,
                Separator::Colon => name.opens_line,
                _ => false,
            };
        let form = match separator {
            Separator::Comma => return None,
            Separator::Tag => {
                self.skip_while(|byte| byte != b'<' && byte != b'\n');
                return Some((Form::Element, start..self.at));
            }
            Separator::Option => Form::Argument,
            Separator::Colon if name.is_quoted && self.peek().is_some_and(|byte| byte.is_ascii_digit()) => Form::Number,
            _ if is_environment => Form::Environment,
            _ => Form::Plain,
        };
        let ends_value = |byte: u8| match form {
            Form::Number => !byte.is_ascii_digit(),
            Form::Environment | Form::Argument => byte.is_ascii_whitespace() || b"\"'`".contains(&byte),
            _ if name.opens_line => byte.is_ascii_whitespace() || b"\"'`".contains(&byte),
            _ => byte.is_ascii_whitespace() || b"\"'`&;,)]}".contains(&byte),
        };
        self.plain(ends_value);
        let mut end = self.at;
        while end > start && form == Form::Plain && b".,;:)".contains(&self.bytes[end - 1]) {
            end -= 1;
        }
        Some((form, start..end))
    }

    /// A value on the next line: quoted, or a block of YAML.
    fn skip_line_end(&mut self) {
        let start = self.at;
        if self.skip_while(|byte| byte == b'|' || byte == b'>') > 0 {
            self.skip_while(|byte| byte == b'-' || byte == b'+');
            self.skip_blanks();
            if self.peek() == Some(b'\n') {
                self.skip_while(|byte| byte.is_ascii_whitespace());
                return;
            }
            self.at = start;
        }
        if self.peek().is_some_and(|byte| byte == b'\n' || byte == b'\r') {
            self.skip_while(|byte| byte.is_ascii_whitespace());
            if self.quote().is_none() {
                self.at = start;
            }
        }
    }

    /// What stands before a literal: `r"…"`, `Some("…")`, `String::from("…")`.
    fn skip_prefix(&mut self) {
        let rest = &self.bytes[self.at..];
        let prefixes: [&[u8]; 10] =
            [b"r", b"b", b"f", b"u", b"@", b"&", b"Some(", b"String::from(", b"SecretString::from(", b"new SecretKey("];
        for prefix in prefixes {
            if rest.starts_with(prefix) && rest.get(prefix.len()).is_some_and(|byte| b"\"'`".contains(byte)) {
                self.at += prefix.len();
                return;
            }
        }
    }

    /// To the closing quote. At each depth of JSON within strings, a closing quote has as many backslashes before it as the
    /// opening one, beyond those that come in whole escaped pairs.
    fn quoted(&mut self, depth: usize, quote: u8) -> Range<usize> {
        let start = self.at;
        let limit = self.bytes.len().min(start + MAX_VALUE_BYTES);
        let mut backslashes = 0;
        for at in start..limit {
            match self.bytes[at] {
                b'\\' => backslashes += 1,
                byte if byte == quote && backslashes % (2 * (depth + 1)) == depth => {
                    return start..at - backslashes.min(depth);
                }
                b'\n' if depth == 0 => break,
                _ => backslashes = 0,
            }
        }
        // Never closed: as far as a value without quotes would go.
        self.plain(|byte| byte.is_ascii_whitespace() || byte == quote);
        start..self.at
    }

    /// To what ends it, an escaped line end or an escaped quote included.
    fn plain(&mut self, ends_value: impl Fn(u8) -> bool) {
        let limit = self.at + MAX_VALUE_BYTES;
        while let Some(byte) = self.peek().filter(|_| self.at < limit) {
            let escapes = byte == b'\\' && self.peek_at(1).is_some_and(|next| b"nrt\"'\\".contains(&next));
            if escapes || ends_value(byte) || self.bytes[self.at..].starts_with("‹".as_bytes()) {
                break;
            }
            self.at += 1;
        }
        // The limit may lie within a character.
        while self.peek().is_some_and(|byte| byte & 0xc0 == 0x80) {
            self.at += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: Option<(&str, Form, &str)>) {
        let at = text.find("pass").or_else(|| text.find("PASS")).unwrap();
        let found = around(text, &(at..at + 4));
        let found = found.map(|found| (found.name, found.form, &text[found.value]));
        assert_eq!(found, expected, "{text}");
    }

    #[test]
    fn finds_a_value_at_any_depth_of_json() {
        check(r#"{"password": "a\"b", "c": 1}"#, Some(("password", Form::Member, r#"a\"b"#)));
        check(r#"{\"password\":\"ab\\\"cd\",\"c\":1}"#, Some(("password", Form::Member, r#"ab\\\"cd"#)));
        check(r#"{\\\"password\\\": \\\"abcd\\\"}"#, Some(("password", Form::Member, "abcd")));
        check(r#"{"password": "ab\\"}"#, Some(("password", Form::Member, r"ab\\")));
    }

    #[test]
    fn finds_values_on_command_lines_and_in_files() {
        check("DB_PASSWORD=ab&cd next", Some(("DB_PASSWORD", Form::Environment, "ab&cd")));
        check(r"x\nPASSWORD=abcd\nY=1", Some(("PASSWORD", Form::Environment, "abcd")));
        check("run --db-password abcd x", Some(("db-password", Form::Argument, "abcd")));
        check("run --password='ab cd' x", Some(("password", Form::Argument, "ab cd")));
        check("  password: abcd\n", Some(("password", Form::Plain, "abcd")));
        check("f(user=u, password=abcd)", Some(("password", Form::Plain, "abcd")));
        check("<password>ab cd</password>", Some(("password", Form::Element, "ab cd")));
        check("- name: DB_PASSWORD\n  value: \"abcd\"", Some(("DB_PASSWORD", Form::Quoted, "abcd")));
        check(r#"set("password", "abcd")"#, Some(("password", Form::Pair, "abcd")));
        check(r#"const PASSWORD: &str = "abcd";"#, Some(("PASSWORD", Form::Quoted, "abcd")));
        check(r#"env["password"] = "abcd""#, Some(("password", Form::Quoted, "abcd")));
    }

    #[test]
    fn finds_none_where_nothing_is_assigned() {
        for text in
            ["the password is", "password::new()", "<input type=\"password\" id=\"x\">", "password", "pass(word)"]
        {
            check(text, None);
        }
    }
}
