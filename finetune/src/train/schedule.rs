//! The learning rate over a run: up along a line, down along a cosine.

use std::f64::consts::PI;

/// The rate of step `step` of `steps`, counted from 0, where `highest` is the rate after the warm-up.
pub(super) fn learning_rate(step: usize, steps: usize, warm_up: f64, highest: f64) -> f64 {
    let rising = (steps as f64 * warm_up).ceil();
    let step = step as f64;
    if step < rising {
        return highest * (step + 1.0) / rising;
    }
    let gone = (step - rising) / (steps as f64 - rising).max(1.0);
    highest * 0.5 * (1.0 + (PI * gone).cos())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rises_and_falls() {
        let rates: Vec<_> = (0..100).map(|step| learning_rate(step, 100, 0.1, 1.0)).collect();
        assert!((rates[0] - 0.1).abs() < 1e-12 && (rates[9] - 1.0).abs() < 1e-12 && (rates[10] - 1.0).abs() < 1e-12);
        assert!(rates[..10].windows(2).all(|pair| pair[0] < pair[1]));
        assert!(rates[10..].windows(2).all(|pair| pair[0] > pair[1]));
        assert!((rates[55] - 0.5).abs() < 1e-12 && rates[99] > 0.0 && rates[99] < 0.001);
        assert!((learning_rate(0, 1, 0.0, 1.0) - 1.0).abs() < 1e-12);
    }
}
