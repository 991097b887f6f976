//! The parts against what they should give, computed plainly.

use candle_core::quantized::{GgmlDType, QTensor};
use candle_core::{DType, Device, Tensor};
use faer::Accum;

use super::rows::{dot, exp};
use super::weight::read;
use crate::model::frozen::{Frozen, Storage};

fn numbers(count: usize) -> Vec<f32> {
    (0..count).map(|at| ((at * 7919) % 1009) as f32 / 504.5 - 1.0).collect()
}

#[test]
fn has_an_exponential_as_good_as_f32_can_be() {
    for at in -8_690..=8_790 {
        let x = at as f32 / 100.0;
        let expected = f64::from(x).exp();
        let difference = (f64::from(exp(x)) - expected).abs() / expected;
        assert!(difference < 2e-7, "exp({x}) is off by {difference:e}");
    }
    assert_eq!((exp(f32::NEG_INFINITY), exp(0.0)), (0.0, 1.0));
    assert!(exp(f32::NAN).is_nan(), "what is no number stays none, or a broken run would look whole");
}

#[test]
fn adds_what_is_left_over_when_the_lanes_are_full() {
    for count in [0, 1, 15, 16, 17, 100] {
        let (left, right) = (numbers(count), numbers(count + 3)[3..].to_vec());
        let expected: f64 = left.iter().zip(&right).map(|(left, right)| f64::from(*left) * f64::from(*right)).sum();
        assert!((f64::from(dot(&left, &right)) - expected).abs() < 1e-4, "{count}");
    }
}

/// Sizes that are no whole number of strips.
#[test]
fn multiplies_by_a_weight_as_it_is_stored() {
    let (tokens, rows, columns) = (37, 1100, 288);
    let device = Device::Cpu;
    let plain = Tensor::from_vec(numbers(rows * columns), (rows, columns), &device).unwrap();
    let quantised = QTensor::quantize(&plain, GgmlDType::Q8_0).unwrap();
    let kinds = [
        Frozen::new(plain.clone(), Storage::AsStored).unwrap(),
        Frozen::new(plain.to_dtype(DType::BF16).unwrap(), Storage::AsStored).unwrap(),
        Frozen::new(plain.to_dtype(DType::F16).unwrap(), Storage::AsStored).unwrap(),
        Frozen::quantised(quantised).unwrap(),
    ];
    for frozen in &kinds {
        let dense = frozen.rows(&Tensor::arange(0, rows as u32, &device).unwrap()).unwrap();
        let input = Tensor::from_vec(numbers(tokens * columns), (tokens, columns), &device).unwrap();
        let gradient = Tensor::from_vec(numbers(tokens * rows), (tokens, rows), &device).unwrap();
        let mut forward = vec![f32::NAN; tokens * rows];
        let mut backward = vec![1.0; tokens * columns];
        read(frozen, |weight| {
            weight.forward(&flat(&input), &mut forward);
            weight.backward(&flat(&gradient), &mut backward, Accum::Add);
        })
        .unwrap();
        close(&forward, &flat(&input.matmul(&dense.t().unwrap()).unwrap()));
        close(&backward, &flat(&(gradient.matmul(&dense).unwrap() + 1.0).unwrap()));
    }
}

fn flat(tensor: &Tensor) -> Vec<f32> {
    tensor.flatten_all().unwrap().to_vec1().unwrap()
}

fn close(found: &[f32], expected: &[f32]) {
    let greatest = expected.iter().fold(0.0_f32, |greatest, number| greatest.max(number.abs()));
    for (at, (found, expected)) in found.iter().zip(expected).enumerate() {
        assert!((found - expected).abs() < 1e-5 * greatest, "number {at}: {found} and {expected}");
    }
}
