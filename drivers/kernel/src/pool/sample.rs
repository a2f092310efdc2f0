//! Requests for tests, at stand-ins for the kernel that invert each byte: one that was lost, came twice or went through twice is
//! seen.

use zeroize::Zeroizing;

use crate::pool::device::{Spec, Task};

pub(crate) fn text(bytes: usize) -> Vec<u8> {
    (0..bytes).map(|at| u8::try_from(at * 7 % 251).expect("below 251")).collect()
}

pub(crate) fn task(spec: Spec, bytes: usize) -> Task {
    Task::over(1, spec, [0; 16], Zeroizing::new(text(bytes)), bytes)
}

pub(crate) fn is_inverted_once(task: &Task) -> bool {
    task.text().iter().zip(text(task.text_bytes)).all(|(&now, before)| now == !before)
}
