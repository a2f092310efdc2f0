//! Writes the page of the papers' experiments in the test bed's guest, from what `cargo xtask testbed papers` measured there.
//!
//! Steps: reports in a folder (`NAME.json.gz`, [`stored_report::StoredReport`]) -> a section for each kind (`policies`, `busy`, `neighbours`,
//! `openssl`, `waits`, `simulated`), the papers' own figures beside ours -> a page above the folder, pictures inside: `guest-papers.md`,
//! or `guest-virtio.md` of the folder of that name.
#![forbid(unsafe_code)]

use std::fs;
use std::path::PathBuf;

use anyhow::Context as _;
use clap::Parser;

mod busy;
mod neighbours;
mod openssl;
mod policies;
mod simulation;
mod stored_report;
mod waits;

/// Draws the page of the papers' experiments in the guest again, from reports that are there.
#[derive(Parser)]
struct Arguments {
    /// Folder with the reports, `docs/results/guest` or `docs/results/guest-virtio`.
    folder: PathBuf,
}

fn main() -> anyhow::Result<()> {
    let Arguments { folder } = Arguments::parse();
    let all = stored_report::read(&folder)?;
    anyhow::ensure!(!all.is_empty(), "{} holds no report", folder.display());
    let is_virtio = folder.ends_with(VIRTIO);
    let (name, head) = if is_virtio { ("guest-virtio.md", HEAD_VIRTIO) } else { ("guest-papers.md", HEAD) };
    let mut page = head.to_owned();
    page += &policies::section(&all, &folder)?;
    page += &busy::section(&all)?;
    page += &neighbours::section(&all, &folder)?;
    page += &openssl::section(&all, &folder)?;
    page += &waits::section(&all);
    page += &simulation::section(&all);
    page += &stored_report::circumstances(&all);
    if is_virtio {
        page = page.replace("(guest/", &format!("({VIRTIO}/"));
    }
    let path = folder.parent().context("the folder lies in another")?.join(name);
    fs::write(&path, page).with_context(|| format!("{}", path.display()))
}

/// The folder of reports with a module that the command drives itself.
const VIRTIO: &str = "guest-virtio";

const HEAD_VIRTIO: &str = "\
# The papers' experiments with a module that programs drive themselves

As [guest-papers](guest-papers.md), which explains the columns, but with a virtio-crypto device that Evener drives itself through VFIO ([virtio](../design/virtio.md)). Again: `cargo xtask figures virtio/aes-128-encrypt-counted` and so on.
";

const HEAD: &str = "\
# The papers' experiments, live in the guest

One emulated core without AES instructions, QEMU's virtio-crypto module behind Linux's AF_ALG ([testbed](../design/testbed.md)). Absolute figures of an emulated core mean nothing: all are ratios within one run, beside the same ratio of
the papers' board. Again: `cargo xtask figures NAME`, `cargo xtask guest`; the page alone: `cargo xtask figures guest-papers`.
";
