//! Published vectors, each in a burst of its own kind.

use evener_core::{Algorithm, Direction, InlineDriver as _};
use evener_testing::drivers::multibuffer;
use evener_testing::requests::{OneBurst, ask_all};

#[test]
fn published_vectors_come_out_as_published() {
    let Some(mut driver) = multibuffer() else { return };
    let mut checked = 0;
    for &algorithm in Algorithm::ALL {
        for direction in [Direction::Encrypt, Direction::Decrypt] {
            if !driver.supports(algorithm, direction) {
                continue;
            }
            let bytes_max = driver.job_bytes_max(algorithm, direction);
            checked += ask_all(&mut OneBurst(&mut driver), |spec| {
                let is_of_kind =
                    (spec.session.algorithm(), spec.session.direction()) == (algorithm, direction);
                is_of_kind && spec.input.len() <= bytes_max
            });
        }
    }
    // Each in place and apart.
    assert!(checked > 2 * 7_000, "{checked} vectors");
}
