//! Paper 001's program in the test bed's guest, where the papers' module lives: a small form of what `cargo xtask guest processes` measures.

use std::path::Path;

use evener_testbed::Guest;
use serde_json::Value;

const PROCESSES: u64 = 16;
const REQUESTS: u64 = 8;
const BYTES: u64 = 10_240;

#[test]
#[ignore = "a boot more"]
fn every_request_of_processes_that_share_a_module_behind_the_kernel_reaches_it_once_in_every_mode() {
    let program = Path::new(env!("CARGO_BIN_EXE_processes"));
    let Some(mut guest) = Guest::builder().program(program).memory_mib(1_024).boot_or_skip() else { return };
    let counts = |guest: &Guest| guest.qmp().and_then(|mut qmp| qmp.module_counts()).expect("QEMU answers");
    let before = counts(&guest);
    let total = PROCESSES * REQUESTS;
    let command = format!(
        "processes kernel --counts {PROCESSES} --total {total} --rounds 1 --modes plain,lists64,fifo --out /out/report"
    );
    let outcome = guest.run(&command).expect("the guest answers");
    outcome.expect_success();
    let report: Value = serde_json::from_slice(&outcome.files["report.json"]).expect("JSON");
    let cells = report["cells"].as_array().expect("cells");
    assert_eq!(cells.len(), 3);
    for cell in cells {
        let figures = &cell["rounds"][0];
        assert_eq!(figures["requests"], total, "{cell}");
        assert_eq!(figures["compared"], PROCESSES, "{cell}");
    }
    // QEMU 7 does not count. A process has a request done before the start, but for those that have no session yet.
    let after = counts(&guest);
    if after.encrypted_count > 0 {
        let requests = 3 * total + 2 * PROCESSES;
        assert_eq!(after.encrypted_count - before.encrypted_count, requests);
        assert_eq!(after.encrypted_bytes - before.encrypted_bytes, requests * BYTES);
    }
    assert_eq!(outcome.kernel_log.warnings(), [""; 0]);
    guest.shut_down().expect("the guest ends");
}
