//! The presets' numbers and where they come from.
//!
//! The papers measured AES in CBC (and ECB on the Cell), encryption only. Other modes of the same key length
//! and decryption are given the same costs, which is an assumption; what has no figure at all, the module does
//! not do.

use evener_core::{Algorithm, Cost, CostTable, Nanos};

use Algorithm::{
    Aes128Cbc, Aes128Ctr, Aes128Ecb, Aes128Gcm, Aes128Xts, Aes192Cbc, Aes192Ctr, Aes192Ecb, Aes192Gcm,
    Aes256Cbc, Aes256Ctr, Aes256Ecb, Aes256Gcm, Aes256Xts,
};

/// Bytes, and `c`, `d` and `h` in nanoseconds.
pub(crate) type Row = (u64, u64, u64, u64);

/// A preset with a name.
pub(crate) struct Known {
    pub(crate) name: &'static str,
    pub(crate) detail: &'static str,
    pub(crate) units: usize,
    /// What algorithms cost.
    pub(crate) costs: &'static [(&'static [Algorithm], &'static [Row])],
}

pub(crate) const KNOWN: [Known; 3] = [
    Known {
        name: "am3358",
        detail: "AM3358's module by paper 002; d and h split by an assumed copy bandwidth",
        units: 1,
        costs: &[
            (&[Aes128Ecb, Aes128Cbc, Aes128Ctr, Aes128Gcm, Aes128Xts], &AM3358_AES128),
            (&[Aes192Ecb, Aes192Cbc, Aes192Ctr, Aes192Gcm], &AM3358_AES192),
            (&[Aes256Ecb, Aes256Cbc, Aes256Ctr, Aes256Gcm, Aes256Xts], &AM3358_AES256),
        ],
    },
    Known {
        name: "cell",
        detail: "Cell/B.E.'s six SPEs by paper 004; d and h split by a fitted serial part; AES-128 only",
        units: 6,
        costs: &[(&[Aes128Ecb], &CELL_ECB), (&[Aes128Cbc, Aes128Ctr, Aes128Gcm, Aes128Xts], &CELL_CBC)],
    },
    Known {
        name: "t2",
        detail: "eight units like the UltraSPARC T2's; all figures invented, its paper has none",
        units: 8,
        costs: &[
            (&[Aes128Ecb, Aes128Cbc, Aes128Ctr, Aes128Gcm, Aes128Xts], &T2_INVENTED),
            (&[Aes192Ecb, Aes192Cbc, Aes192Ctr, Aes192Gcm], &T2_INVENTED),
            (&[Aes256Ecb, Aes256Cbc, Aes256Ctr, Aes256Gcm, Aes256Xts], &T2_INVENTED),
        ],
    },
];

pub(crate) fn table(rows: &[Row]) -> CostTable {
    let cost = |&(bytes, c, d, h): &Row| (bytes, Cost { c: Nanos(c), d: Nanos(d), h: Nanos(h) });
    CostTable::new(rows.iter().map(cost).collect())
}

// Paper 002, tables 2, A.1 and A.2, columns CPU only and module only, 4000 files: c = CPU only / 4000,
// d + h = module only / 4000; h grows by the slope of d + h less two copies at 175 MB/s.
const AM3358_AES128: [Row; 8] = [
    (8, 20_310, 86_700, 200),
    (16, 21_360, 105_030, 390),
    (64, 24_370, 139_930, 1_580),
    (256, 35_420, 142_290, 6_310),
    (1_024, 83_560, 159_920, 25_220),
    (4_096, 290_660, 212_620, 100_890),
    (8_192, 538_320, 255_640, 201_780),
    (16_384, 1_178_960, 330_860, 403_570),
];
const AM3358_AES192: [Row; 8] = [
    (8, 19_740, 72_700, 200),
    (16, 20_550, 102_740, 400),
    (64, 24_950, 140_100, 1_600),
    (256, 41_160, 141_160, 6_380),
    (1_024, 105_590, 159_440, 25_530),
    (4_096, 384_750, 217_500, 102_100),
    (8_192, 703_380, 259_320, 204_210),
    (16_384, 1_290_830, 330_120, 408_410),
];
const AM3358_AES256: [Row; 8] = [
    (8, 20_860, 78_580, 190),
    (16, 21_100, 101_880, 380),
    (64, 25_520, 141_460, 1_510),
    (256, 43_240, 140_850, 6_050),
    (1_024, 113_100, 160_180, 24_190),
    (4_096, 409_880, 212_670, 96_760),
    (8_192, 766_600, 263_970, 193_520),
    (16_384, 1_412_200, 328_440, 387_040),
];

// Paper 004, tables 2 (ECB) and 3 (CBC), one process: c = 8 bytes / PPE's Mbit/s, T = 8 bytes / the proposal's
// Mbit/s, d = min(9.96 us + 1.39 ns per byte, T), h = T - d. The two numbers in d were fitted on two cells of
// table 4 (six processes, ECB, 16 and 8192 bytes).
const CELL_ECB: [Row; 5] = [
    (16, 433, 9_982, 3_200),
    (64, 1_519, 10_049, 3_239),
    (256, 5_792, 10_316, 3_123),
    (1_024, 22_885, 11_383, 5_312),
    (8_192, 182_959, 21_347, 46_133),
];
const CELL_CBC: [Row; 5] = [
    (16, 693, 9_982, 2_895),
    (64, 2_449, 10_049, 2_923),
    (256, 9_443, 10_316, 19_530),
    (1_024, 37_430, 11_383, 17_288),
    (8_192, 298_937, 21_347, 101_354),
];

/// Invented: d is 0.6 of h, and c four times d.
const T2_INVENTED: [Row; 2] = [(0, 24_000, 6_000, 10_000), (16_384, 64_000, 16_000, 26_667)];

#[cfg(test)]
mod tests {
    use evener_sim::papers::table::{AM3358_COSTS, SEED004_TABLE2, SEED004_TABLE3, Table};

    use super::*;

    #[test]
    fn the_costs_of_the_am3358_are_those_derived_from_the_paper() {
        let column = |name| AM3358_COSTS.numbers(name).unwrap();
        let (bytes, c, d, h) = (column("size_bytes"), column("c_us"), column("d_us"), column("h_us"));
        let rows = [AM3358_AES128, AM3358_AES192, AM3358_AES256].concat();
        assert_eq!(rows.len(), bytes.len());
        for (row, &built_in) in rows.iter().enumerate() {
            let us = |ns: u64| ns as f64 / 1_000.0;
            assert_eq!(
                (built_in.0 as f64, us(built_in.1), us(built_in.2), us(built_in.3)),
                (bytes[row], c[row], d[row], h[row])
            );
        }
    }

    #[test]
    fn the_costs_of_the_cell_are_those_of_one_process_with_the_fitted_serial_part() {
        for (rows, table) in [(CELL_ECB, SEED004_TABLE2), (CELL_CBC, SEED004_TABLE3)] {
            check_cell(&rows, &table);
        }
    }

    fn check_cell(rows: &[Row], table: &Table) {
        let column = |name| table.numbers(name).unwrap();
        let (sizes, spes, ppe) = (column("data_size_bytes"), column("proposed_mbps"), column("ppe_mbps"));
        for (row, &(bytes, c, d, h)) in rows.iter().enumerate() {
            let call_ns = |mbps: f64| 8_000.0 * sizes[row] / mbps;
            let serial_ns = (9_960.0 + 1.39 * sizes[row]).min(call_ns(spes[row]));
            let expected = [sizes[row], call_ns(ppe[row]), serial_ns, call_ns(spes[row]) - serial_ns];
            for (built_in, expected) in [bytes, c, d, h].into_iter().zip(expected) {
                assert!(
                    (built_in as f64 - expected).abs() <= 0.5,
                    "{bytes} bytes: {built_in} for {expected}"
                );
            }
        }
    }
}
