//! Memory that steps use again and again. Given back to the system and cleared by it for each result, it cost a seventh of a step.

use std::ops::{Deref, DerefMut};
use std::sync::{Arc, Mutex, PoisonError};

#[derive(Debug, Clone, Default)]
pub(crate) struct Buffers(Arc<Mutex<Vec<Vec<f32>>>>);

impl Buffers {
    /// Room for so many numbers, which hold whatever they held before.
    pub(super) fn take(&self, count: usize) -> Buffer {
        let mut free = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let fits = |buffer: &Vec<f32>| (count..=2 * count).contains(&buffer.capacity());
        let best = (0..free.len()).filter(|at| fits(&free[*at])).min_by_key(|at| free[*at].capacity());
        let mut numbers = if let Some(best) = best {
            free.swap_remove(best)
        } else {
            // One that is too small makes way, so that there are never more than were in use at once.
            let small = |at: &usize| free[*at].capacity() < count;
            if let Some(largest) = (0..free.len()).filter(small).max_by_key(|at| free[*at].capacity()) {
                free.swap_remove(largest);
            }
            Vec::with_capacity(count)
        };
        drop(free);
        numbers.resize(count, 0.0);
        Buffer { numbers, home: self.clone() }
    }

    pub(super) fn zeros(&self, count: usize) -> Buffer {
        let mut buffer = self.take(count);
        buffer.fill(0.0);
        buffer
    }
}

/// Goes home when it is dropped.
#[derive(Debug)]
pub(super) struct Buffer {
    numbers: Vec<f32>,
    home: Buffers,
}

impl Drop for Buffer {
    fn drop(&mut self) {
        self.home.0.lock().unwrap_or_else(PoisonError::into_inner).push(std::mem::take(&mut self.numbers));
    }
}

impl Deref for Buffer {
    type Target = [f32];

    fn deref(&self) -> &[f32] {
        &self.numbers
    }
}

impl DerefMut for Buffer {
    fn deref_mut(&mut self) -> &mut [f32] {
        &mut self.numbers
    }
}
