//! Rows that say nearly the same: MinHash over shingles of five words (Broder 1997), locality-sensitive hashing in bands to find
//! candidates, and the exact Jaccard similarity to decide.
//!
//! What is compared is the prompt and what is trained on it. Results are left out: the same question with the same calls is the
//! same lesson, however long the tests took this time.

use std::collections::{HashMap, HashSet};
use std::fmt::Write as _;

use super::row::Row;

/// From here on two rows are the same.
pub(super) const SIMILAR: f64 = 0.8;
const SHINGLE_WORDS: usize = 5;
/// 32 bands of 4 hashes: two rows of similarity 0.8 share no band once in 10^7 pairs.
const BANDS: usize = 32;
const BAND_HASHES: usize = 4;

/// The shingles of a row, hashed, sorted, each once.
pub(super) type Shingles = Box<[u32]>;

pub(super) fn shingles(row: &Row) -> Shingles {
    let mut text = row.prompt().to_lowercase();
    for call in row.trained_calls() {
        // Writing to a string does not fail.
        let _ = write!(text, " {}", call.function.name);
        for value in call.function.arguments.values() {
            let _ = write!(text, " {value}");
        }
    }
    for answer in row.trained_texts() {
        text.push(' ');
        text.push_str(&answer.to_lowercase());
    }
    shingles_of(&text)
}

fn shingles_of(text: &str) -> Shingles {
    let words: Vec<_> = text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).collect();
    let mut hashes: Vec<_> = if words.len() < SHINGLE_WORDS {
        vec![fold(hash(&words))]
    } else {
        words.windows(SHINGLE_WORDS).map(|words| fold(hash(words))).collect()
    };
    hashes.sort_unstable();
    hashes.dedup();
    hashes.into()
}

/// How much two sets share, of what they have together.
pub(super) fn jaccard(left: &[u32], right: &[u32]) -> f64 {
    let (mut shared, mut one, mut other) = (0_usize, 0, 0);
    while one < left.len() && other < right.len() {
        match left[one].cmp(&right[other]) {
            std::cmp::Ordering::Less => one += 1,
            std::cmp::Ordering::Greater => other += 1,
            std::cmp::Ordering::Equal => (shared, one, other) = (shared + 1, one + 1, other + 1),
        }
    }
    let together = left.len() + right.len() - shared;
    if together == 0 { 1.0 } else { shared as f64 / together as f64 }
}

/// What was kept so far. Rows of one band hang together in a list, so that a row takes its shingles and half a kilobyte.
#[derive(Debug, Default)]
pub(super) struct Kept {
    rows: Vec<(Shingles, u64)>,
    /// By band: the row that was kept last in it.
    last: HashMap<u64, u32>,
    /// By row: in each of its bands, the row that was kept there before it.
    before: Vec<[u32; BANDS]>,
}

/// Before the first row of a band.
const NONE: u32 = u32::MAX;

impl Kept {
    /// The number of a row that says nearly the same and is among those that are asked for. `turn` names the turn that a row is a part
    /// of: the parts of one turn have the same prompt and are no copies of each other.
    pub(super) fn similar(
        &self,
        shingles: &Shingles,
        turn: u64,
        is_asked_for: impl Fn(usize) -> bool,
    ) -> Option<usize> {
        let mut seen = HashSet::new();
        for (band, key) in bands(shingles).into_iter().enumerate() {
            let mut next = self.last.get(&key).copied().unwrap_or(NONE);
            while next != NONE {
                let number = next as usize;
                next = self.before[number][band];
                let (other, other_turn) = &self.rows[number];
                if *other_turn == turn || !is_asked_for(number) || !seen.insert(number) {
                    continue;
                }
                // What differs that much in size shares too little.
                let (few, many) = (shingles.len().min(other.len()), shingles.len().max(other.len()));
                if few as f64 >= SIMILAR * many as f64 && jaccard(shingles, other) >= SIMILAR {
                    return Some(number);
                }
            }
        }
        None
    }

    /// Keeps a row, as the next number.
    pub(super) fn push(&mut self, shingles: Shingles, turn: u64) {
        let number = self.rows.len() as u32;
        let keys = bands(&shingles);
        self.before.push(keys.map(|key| self.last.insert(key, number).unwrap_or(NONE)));
        self.rows.push((shingles, turn));
    }

    /// Keeps a row unless one was kept that says nearly the same; that row's number is returned then.
    pub(super) fn add(&mut self, shingles: Shingles, turn: u64) -> Option<usize> {
        let similar = self.similar(&shingles, turn, |_| true);
        if similar.is_none() {
            self.push(shingles, turn);
        }
        similar
    }
}

fn bands(shingles: &[u32]) -> [u64; BANDS] {
    std::array::from_fn(|band| {
        let mut key = band as u64;
        for function in 0..BAND_HASHES {
            let salt = mix((band * BAND_HASHES + function) as u64 + 1);
            let least = shingles.iter().map(|shingle| mix(u64::from(*shingle) ^ salt)).min().unwrap_or_default();
            key = mix(key ^ least);
        }
        key
    })
}

fn hash(words: &[&str]) -> u64 {
    // FNV-1a, with a byte between the words that is in none.
    let bytes = words.iter().flat_map(|word| word.bytes().chain(std::iter::once(0xff)));
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

const fn fold(hash: u64) -> u32 {
    (mix(hash) >> 32) as u32
}

/// The finaliser of splitmix64: every bit of the result depends on every bit of the number.
const fn mix(number: u64) -> u64 {
    let mut mixed = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const TEXT: &str =
        "run the tests of the parser and tell me which of them fail since the last change to the lexer please";

    #[test]
    fn takes_a_changed_word_in_a_long_text_for_the_same() {
        let long = (0..60).map(|number| format!("word{number}")).collect::<Vec<_>>().join(" ");
        let mut kept = Kept::default();
        assert_eq!(kept.add(shingles_of(&long), 1), None);
        assert_eq!(kept.add(shingles_of(&long.replace("word59", "other")), 2), Some(0));
        assert_eq!(kept.add(shingles_of(&long.replace("word59", "other")), 1), None, "a part of the same turn");
        assert_eq!(kept.add(shingles_of(TEXT), 3), None);
    }

    #[test]
    fn compares_short_texts_as_wholes() {
        let mut kept = Kept::default();
        assert_eq!(kept.add(shingles_of("run the tests"), 1), None);
        assert_eq!(kept.add(shingles_of("Run the tests!".to_lowercase().as_str()), 2), Some(0));
        assert_eq!(kept.add(shingles_of("run the linter"), 3), None);
    }

    proptest! {
        #[test]
        fn keeps_no_two_that_are_similar(
            base in proptest::collection::vec("[a-e]", 8..40),
            changes in proptest::collection::vec((0_usize..40, "[f-h]"), 1..30),
        ) {
            let mut kept = Kept::default();
            for (turn, (place, word)) in changes.iter().enumerate() {
                let mut words = base.clone();
                let place = place % words.len();
                words[place] = word.clone();
                kept.add(shingles_of(&words.join(" ")), turn as u64);
            }
            for (number, (one, _)) in kept.rows.iter().enumerate() {
                for (other, _) in &kept.rows[number + 1..] {
                    prop_assert!(jaccard(one, other) < SIMILAR);
                }
            }
        }
    }
}
