//! What a word is reduced to, so that `running` and `runs` find each other, and which words say too little to be looked for.

use std::borrow::Cow;
use std::collections::HashSet;
use std::sync::{LazyLock, OnceLock};

use rust_stemmers::{Algorithm, Stemmer};
use unicode_normalization::UnicodeNormalization as _;
use whatlang::{Detector, Lang};

/// Languages that can be told apart and stemmed, with the name of their stop words.
const LANGUAGES: [(Lang, Algorithm, &str); 17] = [
    (Lang::Eng, Algorithm::English, "en"),
    (Lang::Ara, Algorithm::Arabic, "ar"),
    (Lang::Dan, Algorithm::Danish, "da"),
    (Lang::Deu, Algorithm::German, "de"),
    (Lang::Ell, Algorithm::Greek, "el"),
    (Lang::Fin, Algorithm::Finnish, "fi"),
    (Lang::Fra, Algorithm::French, "fr"),
    (Lang::Hun, Algorithm::Hungarian, "hu"),
    (Lang::Ita, Algorithm::Italian, "it"),
    (Lang::Nld, Algorithm::Dutch, "nl"),
    (Lang::Nob, Algorithm::Norwegian, "no"),
    (Lang::Por, Algorithm::Portuguese, "pt"),
    (Lang::Ron, Algorithm::Romanian, "ro"),
    (Lang::Rus, Algorithm::Russian, "ru"),
    (Lang::Spa, Algorithm::Spanish, "es"),
    (Lang::Swe, Algorithm::Swedish, "sv"),
    (Lang::Tur, Algorithm::Turkish, "tr"),
];
/// A language shows in this much of a text.
const MAX_SAMPLE_CHARS: usize = 600;
/// Fewer letters than this could be of any language.
const MIN_SAMPLE_CHARS: usize = 12;
/// What is less sure is taken for English, as most of what is about code is.
const MIN_CONFIDENCE: f64 = 0.35;

static ENGLISH: LazyLock<Language> = LazyLock::new(|| Language::of(Algorithm::English, "en"));
/// In the order of [`LANGUAGES`], each made when a text is first in it.
static OTHERS: [OnceLock<Language>; LANGUAGES.len()] = [const { OnceLock::new() }; LANGUAGES.len()];
static DETECTOR: LazyLock<Detector> =
    LazyLock::new(|| Detector::with_allowlist(LANGUAGES.iter().map(|(lang, ..)| *lang).collect()));

struct Language {
    stemmer: Stemmer,
    stop_words: HashSet<&'static str>,
}

impl Language {
    fn of(algorithm: Algorithm, name: &str) -> Self {
        let stop_words = stop_words::lookup(name).unwrap_or_default().iter().copied().collect();
        Self { stemmer: Stemmer::create(algorithm), stop_words }
    }
}

/// Stems of one text: those of English, in which code and its errors are written, and those of the language that the text is in.
pub(super) struct Stems {
    own: Option<&'static Language>,
}

impl Stems {
    /// Looks at the beginning of the text.
    pub(super) fn of(text: &str) -> Self {
        let sample: String = text.chars().filter(|c| c.is_alphabetic() || *c == ' ').take(MAX_SAMPLE_CHARS).collect();
        if sample.chars().count() < MIN_SAMPLE_CHARS {
            return Self { own: None };
        }
        let detected = DETECTOR.detect(&sample).filter(|found| found.confidence() >= MIN_CONFIDENCE);
        let own = detected
            .filter(|found| found.lang() != Lang::Eng)
            .and_then(|found| LANGUAGES.iter().zip(&OTHERS).find(|((lang, ..), _)| *lang == found.lang()))
            .map(|((_, algorithm, name), language)| language.get_or_init(|| Language::of(*algorithm, name)));
        Self { own }
    }

    /// Whether the text is in a language that is not English.
    pub(super) const fn is_of_another_language(&self) -> bool {
        self.own.is_some()
    }

    /// The stems of a lower-case word, the language's own first; none twice.
    pub(super) fn of_word<'a>(&self, word: &'a str) -> Vec<Cow<'a, str>> {
        let mut stems: Vec<_> = self.own.iter().map(|own| own.stemmer.stem(word)).collect();
        let english = ENGLISH.stemmer.stem(word);
        if !stems.contains(&english) {
            stems.push(english);
        }
        stems
    }

    /// Whether the language of the text has the word so often that it tells nothing.
    pub(super) fn is_stop_word(&self, word: &str) -> bool {
        is_english_stop_word(word) || self.own.as_ref().is_some_and(|own| own.stop_words.contains(word))
    }
}

pub(super) fn is_english_stop_word(word: &str) -> bool {
    ENGLISH.stop_words.contains(word)
}

/// The word as it is compared: lower case, and one form of each character.
pub(super) fn normal(word: &str) -> String {
    if word.is_ascii() { word.to_ascii_lowercase() } else { word.nfkc().collect::<String>().to_lowercase() }
}

/// The word without accents, for those who do not type them; `None` if it has none.
pub(super) fn without_accents(word: &str) -> Option<String> {
    if word.is_ascii() {
        return None;
    }
    let plain: String = word.nfd().filter(|c| !matches!(c, '\u{0300}'..='\u{036f}')).collect();
    (plain != word).then_some(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stems(text: &str, word: &str) -> Vec<String> {
        Stems::of(text).of_word(word).into_iter().map(Cow::into_owned).collect()
    }

    #[test]
    fn stems_the_language_of_the_text_beside_english() {
        assert_eq!(stems("the migration failed again", "migrations"), ["migrat"]);
        let german = "Warum schlagen die Verbindungen zur Datenbank immer wieder fehl?";
        assert_eq!(stems(german, "verbindungen")[0], "verbind");
        let spanish = "¿Por qué fallaron las migraciones de la base de datos?";
        assert_eq!(stems(spanish, "migraciones")[0], "migracion");
    }

    #[test]
    fn knows_stop_words_of_english_and_of_the_text() {
        let german = Stems::of("Warum schlagen die Verbindungen zur Datenbank immer wieder fehl?");
        assert!(german.is_stop_word("die") && german.is_stop_word("the") && !german.is_stop_word("datenbank"));
        assert!(!Stems::of("short").is_stop_word("die"));
    }

    #[test]
    fn compares_words_in_one_form() {
        assert_eq!(normal("ＡＢＣ"), "abc");
        assert_eq!(without_accents("configuración").as_deref(), Some("configuracion"));
        assert_eq!(without_accents("plain"), None);
    }
}
