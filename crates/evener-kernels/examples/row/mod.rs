//! A row of speeds.

/// Prints rates of `calls` messages of `size` bytes by their median times: libcrypto's, which come first, and each level's with its share of that.
pub(crate) fn print_row(size: usize, calls: usize, mut times: Vec<Vec<f64>>) {
    let medians: Vec<f64> = times
        .iter_mut()
        .map(|times| {
            times.sort_by(f64::total_cmp);
            times[times.len() / 2]
        })
        .collect();
    let rate = |time: f64| (size * calls) as f64 / time / 1e9;
    let levels: String = medians[1..]
        .iter()
        .map(|time| format!("{:>17.2} ({:>5.2} x)", rate(*time), medians[0] / time))
        .collect();
    println!("{size:>8} {:>14.2} {levels}", rate(medians[0]));
}
