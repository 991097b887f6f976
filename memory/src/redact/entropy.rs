//! How far from a word a text is.

/// Shannon entropy in bits per byte. A random hexadecimal string has up to 4, a random base64 string up to 6; short ones have
/// less than their alphabet allows, because they cannot use all of it.
pub(super) fn bits_per_byte(bytes: &[u8]) -> f64 {
    let mut counts = [0_u32; 256];
    for byte in bytes {
        counts[usize::from(*byte)] += 1;
    }
    let total = bytes.len() as f64;
    counts
        .iter()
        .filter(|count| **count > 0)
        .map(|count| f64::from(*count) / total)
        .map(|share| -share * share.log2())
        .sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_nothing_for_one_letter_and_the_logarithm_for_all_different() {
        assert!(bits_per_byte(b"aaaa").abs() < 1e-9);
        assert!((bits_per_byte(b"abcdefgh") - 3.0).abs() < 1e-9);
        assert!(bits_per_byte(b"").abs() < 1e-9);
    }
}
