//! What requests take of the cores at a module.

use std::fmt::Write as _;

use serde::Serialize;

/// A module and its requests.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ModulePackets {
    /// As in `--module`.
    pub module: String,
    /// What stands behind it.
    pub detail: String,
    /// Whether its times are programmed.
    pub emulated: bool,
    /// By length and by how many are handed over together.
    pub packets: Vec<Packets>,
}

/// What requests of one length, so many handed over together, take.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Packets {
    /// Text of a request.
    pub bytes: usize,
    /// Requests that were handed over together.
    pub burst: usize,
    /// Requests that were measured.
    pub requests: u64,
    /// Core time of a request from handing over to taking back, by the clocks of this process's threads.
    pub core_us_per_packet: f64,
    /// What the kernel's threads and interrupts take of the cores beside, where that was measured.
    pub unseen_us_per_packet: Option<f64>,
    /// Requests that one system call carried; none where no call was made.
    pub requests_per_system_call: Option<f64>,
}

impl ModulePackets {
    pub(super) fn to_text(&self) -> String {
        let marked = if self.emulated { ", EMULATED" } else { "" };
        let mut text = format!("{} ({}{marked})\n", self.module, self.detail);
        for Packets {
            bytes,
            burst,
            core_us_per_packet,
            unseen_us_per_packet,
            requests_per_system_call,
            ..
        } in &self.packets
        {
            let unseen =
                unseen_us_per_packet.map_or_else(String::new, |us| format!(" + {us:.1} of the kernel's"));
            let calls = requests_per_system_call.map_or_else(
                || "no system call".to_owned(),
                |count| format!("{count:.2} requests a system call"),
            );
            writeln!(
                text,
                "  {bytes} B, {burst} together: {core_us_per_packet:.1} core us a packet{unseen}, {calls}"
            )
            .ok();
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_has_both_figures_and_says_what_was_not_measured() {
        let one = Packets {
            bytes: 1_104,
            burst: 15,
            requests: 1_500,
            core_us_per_packet: 12.34,
            unseen_us_per_packet: Some(3.0),
            requests_per_system_call: Some(0.333),
        };
        let other = Packets { unseen_us_per_packet: None, requests_per_system_call: None, ..one.clone() };
        let module = ModulePackets {
            module: "devcrypto".to_owned(),
            detail: "OCF".to_owned(),
            emulated: false,
            packets: vec![one, other],
        };
        assert_eq!(
            module.to_text(),
            "devcrypto (OCF)\n  1104 B, 15 together: 12.3 core us a packet + 3.0 of the kernel's, 0.33 requests a system call\n  \
             1104 B, 15 together: 12.3 core us a packet, no system call\n"
        );
    }
}
