//! A count of parameters in the short form that GGUF's names use: `1.5B`, `135M`, `64K`.

/// As `model_weight_count_rounded_notation` in gguf-py's utility.py has it, at least two digits.
pub(super) fn of(parameters: u64) -> String {
    const MIN_DIGITS: usize = 2;
    let parameters = parameters as f64;
    let (scaled, suffix) = match parameters {
        _ if parameters > 1e12 => (parameters * 1e-12, 'T'),
        _ if parameters > 1e9 => (parameters * 1e-9, 'B'),
        _ if parameters > 1e6 => (parameters * 1e-6, 'M'),
        _ => (parameters * 1e-3, 'K'),
    };
    let whole = format!("{:.0}", scaled.round_ties_even());
    let digits = MIN_DIGITS.saturating_sub(whole.trim_start_matches('0').len());
    format!("{scaled:.digits$}{suffix}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_as_short_as_in_names_of_files() {
        for (parameters, label) in
            [(596_049_920, "596M"), (1_543_714_304, "1.5B"), (134_515_008, "135M"), (64_000, "64K"), (450, "0.45K")]
        {
            assert_eq!(of(parameters), label);
        }
    }
}
