//! Weights of threads by their nice values.

/// Weight of a nice value, clamped to -20..=19: the kernel's table, a factor of about 1.25 per step.
#[must_use]
pub fn weight_of_nice(nice: i32) -> u32 {
    const WEIGHTS: [u32; 40] = [
        88761, 71755, 56483, 46273, 36291, 29154, 23254, 18705, 14949, 11916, 9548, 7620, 6100, 4904, 3906,
        3121, 2501, 1991, 1586, 1277, 1024, 820, 655, 526, 423, 335, 272, 215, 172, 137, 110, 87, 70, 56, 45,
        36, 29, 23, 18, 15,
    ];
    WEIGHTS[(nice.clamp(-20, 19) + 20).unsigned_abs() as usize]
}
