//! Paper 004: six processes share the engines of a Cell/B.E. through one serial path.
//!
//! Path of one figure: the one-process column gives the time `T1` of a call -> two cells with six processes give
//! the serial part `sigma(s) = s0 + s1 s` of a call ([`Serial::fit`]) -> the rest of the call, `T1 - sigma`, runs
//! beside other calls -> a closed queueing network of one station and a delay ([`Queue::calls_per_us`]) -> Mbit/s.
//!
//! Fitted: `s0` and `s1`, on the ECB cells of 16 and 8192 bytes with six processes. Predicted, without a look
//! at them: the other eight cells of the proposed system with six processes. Not robust: fitted on 16 and 1024
//! bytes instead, ECB at 8192 bytes is missed by -19 %; the tests hold both.

use super::table::{SEED004_TABLE2, SEED004_TABLE3, SEED004_TABLE4, SEED004_TABLE5, Table, TableError};

/// Processes of tables 4 and 5.
pub const PROCESSES: u32 = 6;

/// The two sizes, in bytes, whose ECB cells with six processes the serial part is fitted on.
pub const FITTED_SIZES: [f64; 2] = [16.0, 8192.0];

/// Mode of operation of AES-128.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Tables 2 and 4.
    Ecb,
    /// Tables 3 and 5.
    Cbc,
}

/// How calls wait for the serial part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Queue {
    /// Exact mean value analysis: one queueing station and a delay, service times vary.
    MeanValue,
    /// The asymptotic bound: no call waits until the station is full. No pattern of service times does better.
    Bound,
}

impl Queue {
    /// Calls per microsecond of `processes` that each repeat a call with a serial part of `serial_us` and a part of
    /// `beside_us` that needs no shared resource. 0 where there are no processes.
    #[must_use]
    pub fn calls_per_us(self, processes: u32, serial_us: f64, beside_us: f64) -> f64 {
        match self {
            Self::MeanValue => {
                let (mut waiting, mut rate) = (0.0, 0.0);
                for count in 1..=processes {
                    // A process that arrives sees the queue that one process less leaves on average.
                    let residence_us = serial_us * (1.0 + waiting);
                    rate = f64::from(count) / (residence_us + beside_us);
                    waiting = rate * residence_us;
                }
                rate
            }
            Self::Bound => (f64::from(processes) / (serial_us + beside_us)).min(1.0 / serial_us),
        }
    }

    /// The serial part, in microseconds, with which `processes` reach `calls_per_us`, for calls of `call_us`. The
    /// whole call where even that is too fast.
    fn serial_us(self, processes: u32, call_us: f64, calls_per_us: f64) -> f64 {
        let (mut low, mut high) = (0.0, call_us);
        // 80 halvings of some microseconds are below the precision of a double.
        for _ in 0..80 {
            let middle = f64::midpoint(low, high);
            if self.calls_per_us(processes, middle, call_us - middle) > calls_per_us {
                low = middle;
            } else {
                high = middle;
            }
        }
        low
    }
}

/// The serial part of a call: driver, kernel and main processor, one call at a time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Serial {
    /// Microseconds of every call.
    pub s0_us: f64,
    /// Microseconds per byte.
    pub s1_us_per_byte: f64,
    /// The queue that it was fitted with, and that predictions use.
    pub queue: Queue,
}

impl Serial {
    /// Fits both coefficients on two ECB cells of six processes: the line through the serial parts that reach them.
    ///
    /// # Errors
    ///
    /// [`TableError`] where a table lacks a column; the tables of this crate do not.
    ///
    /// # Panics
    ///
    /// Where table 4 has no row for one of the `sizes`: 16, 64, 256, 1024 or 8192 bytes.
    pub fn fit(sizes: [f64; 2], queue: Queue) -> Result<Self, TableError> {
        let cells = measured(Mode::Ecb)?;
        let [low, high] = sizes.map(|size| {
            let cell = cells.iter().find(|cell| cell.size_bytes == size).expect("a size of table 4");
            queue.serial_us(PROCESSES, cell.call_us, cell.six_mbps / (8.0 * size))
        });
        let s1_us_per_byte = (high - low) / (sizes[1] - sizes[0]);
        Ok(Self { s0_us: low - s1_us_per_byte * sizes[0], s1_us_per_byte, queue })
    }

    /// Mbit/s of `processes` that each work in calls of `size_bytes`, where one call alone takes `call_us`.
    #[must_use]
    pub fn mbps(&self, processes: u32, size_bytes: f64, call_us: f64) -> f64 {
        let serial_us = (self.s0_us + self.s1_us_per_byte * size_bytes).min(call_us);
        self.queue.calls_per_us(processes, serial_us, call_us - serial_us) * size_bytes * 8.0
    }
}

/// A cell of the proposed system with six processes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cell {
    /// Table 4 (ECB) or table 5 (CBC).
    pub mode: Mode,
    /// Bytes of a call.
    pub size_bytes: f64,
    /// As printed, Mbit/s.
    pub measured_mbps: f64,
    /// Mbit/s.
    pub predicted_mbps: f64,
    /// Whether the serial part was fitted on this cell, which then says nothing about the model.
    pub fitted: bool,
}

impl Cell {
    /// By how much the prediction is off, in per cent of what was measured.
    #[must_use]
    pub fn error_percent(&self) -> f64 {
        100.0 * (self.predicted_mbps / self.measured_mbps - 1.0)
    }
}

/// All ten cells of the proposed system with six processes, with the serial part fitted on the ECB cells of
/// `fitted_sizes` bytes.
///
/// # Errors
///
/// As [`Serial::fit`].
///
/// # Panics
///
/// As [`Serial::fit`].
pub fn six_processes(fitted_sizes: [f64; 2], queue: Queue) -> Result<Vec<Cell>, TableError> {
    let serial = Serial::fit(fitted_sizes, queue)?;
    let mut cells = Vec::new();
    for mode in [Mode::Ecb, Mode::Cbc] {
        cells.extend(measured(mode)?.iter().map(|row| Cell {
            mode,
            size_bytes: row.size_bytes,
            measured_mbps: row.six_mbps,
            predicted_mbps: serial.mbps(PROCESSES, row.size_bytes, row.call_us),
            fitted: mode == Mode::Ecb && fitted_sizes.contains(&row.size_bytes),
        }));
    }
    Ok(cells)
}

/// Figure 8 by the model: ECB, Mbit/s with one to six processes. The paper gives no values for two to five, so only
/// the ends can be checked.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Figure8 {
    /// Bytes of a call.
    pub size_bytes: f64,
    /// Mbit/s with one process, with two, and so on.
    pub mbps: [f64; PROCESSES as usize],
}

/// The curves of figure 8 by `serial`, one for each size of table 2.
///
/// # Errors
///
/// As [`Serial::fit`].
pub fn figure8(serial: &Serial) -> Result<Vec<Figure8>, TableError> {
    let curve = |row: &Measured| Figure8 {
        size_bytes: row.size_bytes,
        mbps: [1, 2, 3, 4, 5, 6].map(|processes| serial.mbps(processes, row.size_bytes, row.call_us)),
    };
    Ok(measured(Mode::Ecb)?.iter().map(curve).collect())
}

/// What the paper measured of the proposed system at one size.
struct Measured {
    size_bytes: f64,
    /// Time of a call with one process.
    call_us: f64,
    /// Rate with six processes.
    six_mbps: f64,
}

fn measured(mode: Mode) -> Result<Vec<Measured>, TableError> {
    let [one, six]: [Table; 2] = match mode {
        Mode::Ecb => [SEED004_TABLE2, SEED004_TABLE4],
        Mode::Cbc => [SEED004_TABLE3, SEED004_TABLE5],
    };
    let rates = one.numbers("proposed_mbps")?.into_iter().zip(six.numbers("proposed_mbps")?);
    let rows = one.numbers("data_size_bytes")?.into_iter().zip(rates);
    Ok(rows
        .map(|(size_bytes, (one_mbps, six_mbps))| Measured {
            size_bytes,
            call_us: 8.0 * size_bytes / one_mbps,
            six_mbps,
        })
        .collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOLDEN: Table = Table::new(include_str!("../../../../vectors/papers/golden/pred_cell.csv"));
    const GOLDEN_FIGURE8: Table =
        Table::new(include_str!("../../../../vectors/papers/golden/pred_cell_fig8.csv"));

    /// Stationary rate of the machine repair model, computed from its states instead of by recursion.
    fn repair_model(processes: u32, serial_us: f64, beside_us: f64) -> f64 {
        let mut weight = 1.0;
        let mut sum = 1.0;
        for queued in 0..processes {
            weight *= f64::from(processes - queued) * serial_us / beside_us;
            sum += weight;
        }
        (1.0 - 1.0 / sum) / serial_us
    }

    #[test]
    fn mean_value_analysis_agrees_with_the_sum_over_the_states() {
        for processes in 1..=12 {
            for (serial, beside) in [(10.0, 3.2), (1.0, 1.0), (21.3, 46.1), (0.1, 50.0)] {
                let exact = repair_model(processes, serial, beside);
                let computed = Queue::MeanValue.calls_per_us(processes, serial, beside);
                assert!(
                    (computed / exact - 1.0).abs() < 1e-12,
                    "{processes} {serial} {beside}: {computed} {exact}"
                );
                assert!(computed <= Queue::Bound.calls_per_us(processes, serial, beside) + 1e-12);
            }
        }
    }

    #[test]
    fn the_serial_part_is_ten_microseconds_and_a_copy_at_0_72_gigabytes_per_second() {
        let serial = Serial::fit(FITTED_SIZES, Queue::MeanValue).unwrap();
        assert!((serial.s0_us - 9.96).abs() < 0.005, "{serial:?}");
        assert!((serial.s1_us_per_byte * 1000.0 - 1.39).abs() < 0.005, "{serial:?}");
    }

    #[test]
    fn no_call_is_more_serial_than_it_is_long() {
        let serial = Serial { s0_us: 10.0, s1_us_per_byte: 0.0, queue: Queue::MeanValue };
        let alone = serial.mbps(1, 100.0, 4.0);
        assert!((alone - 200.0).abs() < 1e-9 && (serial.mbps(6, 100.0, 4.0) - alone).abs() < 1e-9, "{alone}");
    }

    #[test]
    fn the_fitted_cells_are_met_and_the_eight_others_predicted() {
        let cells = six_processes(FITTED_SIZES, Queue::MeanValue).unwrap();
        let (fitted, held_out): (Vec<Cell>, Vec<Cell>) = cells.into_iter().partition(|cell| cell.fitted);
        assert!(fitted.len() == 2 && fitted.iter().all(|cell| cell.error_percent().abs() < 1e-6));
        let errors: Vec<f64> = held_out.iter().map(|cell| cell.error_percent().abs()).collect();
        let mean = errors.iter().sum::<f64>() / 8.0;
        assert!(errors.len() == 8 && errors.iter().all(|&error| error <= 12.0), "{errors:?}");
        assert!(mean <= 5.0, "{mean}");
    }

    #[test]
    fn every_prediction_is_that_of_the_reference_for_both_fits_and_both_queues() {
        let column = |name| GOLDEN.numbers(name).unwrap();
        let mut rows = column("pred_mbps").into_iter().zip(column("err_pct"));
        for fitted_sizes in [FITTED_SIZES, [16.0, 1024.0]] {
            for queue in [Queue::MeanValue, Queue::Bound] {
                for cell in six_processes(fitted_sizes, queue).unwrap() {
                    let (mbps, error) = rows.next().unwrap();
                    // The reference is rounded to two decimals and to one.
                    assert!((cell.predicted_mbps - mbps).abs() < 0.0051, "{cell:?}: {mbps}");
                    assert!((cell.error_percent() - error).abs() < 0.051, "{cell:?}: {error}");
                }
            }
        }
        assert_eq!(rows.next(), None);
    }

    #[test]
    fn figure_8_is_that_of_the_reference_and_flattens() {
        let fitted = Serial::fit(FITTED_SIZES, Queue::MeanValue).unwrap();
        for (queue, prefix) in [(Queue::MeanValue, "mva"), (Queue::Bound, "det")] {
            for (row, curve) in figure8(&Serial { queue, ..fitted }).unwrap().iter().enumerate() {
                for (processes, mbps) in (1..).zip(curve.mbps) {
                    let golden = GOLDEN_FIGURE8.numbers(&format!("{prefix}_{processes}p_mbps")).unwrap()[row];
                    assert!((mbps - golden).abs() < 0.051, "{curve:?} {processes}: {golden}");
                }
                let gains: Vec<f64> = curve.mbps.windows(2).map(|pair| pair[1] - pair[0]).collect();
                assert!(gains.windows(2).all(|pair| pair[1] <= pair[0] + 1e-9), "{gains:?}");
            }
        }
    }

    #[test]
    fn fitted_on_small_calls_alone_the_model_misses_the_large_one() {
        let cells = six_processes([16.0, 1024.0], Queue::MeanValue).unwrap();
        let large = cells.iter().find(|cell| cell.mode == Mode::Ecb && cell.size_bytes == 8192.0).unwrap();
        assert!(large.error_percent() < -15.0, "{large:?}");
    }
}
