//! Whether a prompt corrects what was just done: "no, don't …", in the languages that people type to agents. Only its beginning counts: what
//! stands in the middle of a prompt is mostly about something else.

/// How corrections begin, in lower case and without accents.
const BEGINNINGS: [&str; 68] = [
    // English
    "no, don't",
    "no don't",
    "no, do not",
    "no, never",
    "no, use",
    "no, not",
    "no, we",
    "no, that",
    "no, stop",
    "no! don't",
    "don't do that",
    "don't edit",
    "don't touch",
    "don't change",
    "don't run",
    "don't use",
    "don't ever",
    "do not run",
    "do not edit",
    "do not touch",
    "do not change",
    "do not use",
    "never run",
    "never use",
    "never do",
    "stop running",
    "stop using",
    "stop doing",
    "please don't",
    "please stop",
    "you should not have",
    "you shouldn't have",
    "why did you",
    "wrong,",
    "that's wrong",
    "that was wrong",
    "we don't",
    "we never",
    "not like that",
    // Spanish
    "no, no",
    "no uses",
    "no hagas",
    "no ejecutes",
    "nunca uses",
    "deja de",
    // German
    "nein, nicht",
    "nein, nimm",
    "nein, benutze",
    "nicht so",
    "lass das",
    "hor auf",
    "niemals",
    "benutze nicht",
    "mach das nicht",
    // French
    "non, ne",
    "non, pas",
    "n'utilise pas",
    "ne fais pas",
    "ne lance pas",
    "arrete de",
    // Portuguese and Italian
    "nao, nao",
    "nao use",
    "non usare",
    "no, usa",
    // Chinese, Japanese
    "不要",
    "别用",
    "不对",
    "やめて",
];

/// A longer prompt is a task of its own.
const MAX_CHARS: usize = 600;

/// Whether the prompt begins like a correction.
pub(super) fn is_correction(prompt: &str) -> bool {
    let prompt = prompt.trim_start();
    if prompt.is_empty() || prompt.chars().count() > MAX_CHARS {
        return false;
    }
    let plain = plain(prompt);
    BEGINNINGS.iter().any(|beginning| {
        let rest = plain.strip_prefix(beginning);
        let ends_a_word = !beginning.ends_with(char::is_alphanumeric) || !beginning.is_ascii();
        rest.is_some_and(|rest| ends_a_word || !rest.starts_with(char::is_alphanumeric))
    }) || JAPANESE_ENDINGS.iter().any(|ending| plain.lines().next().unwrap_or_default().contains(ending))
}

/// In Japanese it is the verb's ending that forbids.
const JAPANESE_ENDINGS: [&str; 4] = ["しないで", "使わないで", "しないでください", "やめてください"];

fn plain(text: &str) -> String {
    use unicode_normalization::UnicodeNormalization as _;
    // Accents only: in Japanese the marks tell syllables apart.
    let without = text.nfd().filter(|c| !('\u{300}'..='\u{36f}').contains(c)).nfc();
    without.map(|c| if c == '’' { '\'' } else { c }).collect::<String>().to_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hears_corrections_in_several_languages() {
        for prompt in [
            "no, don't push to main",
            "No, use pnpm here.",
            "Don’t use npm, we have pnpm",
            "never run the migrations by hand",
            "Nein, nicht mit npm, wir haben pnpm",
            "Hör auf, die Datenbank zu leeren",
            "no uses npm, usa pnpm",
            "Non, ne lance pas les tests",
            "Não, não apague isso",
            "不要用 npm",
            "npm は使わないでください",
        ] {
            assert!(is_correction(prompt), "{prompt}");
        }
        for prompt in [
            "notice that the build is slow",
            "no",
            "now add a test",
            "Add a test that says why we don't use npm",
            "nonono",
            "Why did the test fail?",
            "",
        ] {
            assert!(!is_correction(prompt), "{prompt}");
        }
    }
}
