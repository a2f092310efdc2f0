//! Writes the page of the papers' experiments in the test bed's guest, from what `cargo xtask testbed papers` measured there.
//!
//! Steps: reports in a folder (`NAME.json.gz`, [`stored_report::StoredReport`]) -> a section for each kind (`policies`, `busy`, `neighbours`,
//! `openssl`, `waits`, `simulated`), the papers' own figures beside ours -> a page above the folder, pictures inside: `guest-papers.md` of
//! the folder `guest`, else a page of the folder's name ([`HEADS`]).
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
    /// Folder with the reports: `docs/results/guest`, or that of one of the other heads.
    folder: PathBuf,
}

fn main() -> anyhow::Result<()> {
    let Arguments { folder } = Arguments::parse();
    let all = stored_report::read(&folder)?;
    anyhow::ensure!(!all.is_empty(), "{} holds no report", folder.display());
    let named = HEADS.iter().find(|(name, _)| folder.ends_with(name));
    let mut page = named.map_or(HEAD, |(_, head)| head).to_owned();
    page += &policies::section(&all, &folder)?;
    page += &busy::section(&all)?;
    page += &neighbours::section(&all, &folder)?;
    page += &openssl::section(&all, &folder)?;
    page += &waits::section(&all);
    page += &simulation::section(&all);
    page += &stored_report::circumstances(&all);
    let name = named.map_or("guest-papers", |(name, _)| name);
    if named.is_some() {
        page = page.replace("(guest/", &format!("({name}/"));
    }
    let path = folder.parent().context("the folder lies in another")?.join(name).with_extension("md");
    fs::write(&path, page).with_context(|| format!("{}", path.display()))
}

/// Folders of reports besides the first, each with how its page begins.
const HEADS: [(&str, &str); 3] =
    [("guest-virtio", HEAD_VIRTIO), ("guest-armv7", HEAD_ARMV7), ("guest-aarch64", HEAD_AARCH64)];

const HEAD_ARMV7: &str = "\
# The papers' experiments on a 32-bit processor of ARM

As [guest-papers](guest-papers.md), which explains the columns, on an emulated `cortex-a7`, whose relative the papers' processor is: no instructions for AES. By counted instructions, 2 ns each, which is not what a processor takes for each; nothing was run on silicon. Again: `cargo xtask figures armv7/aes-128-encrypt-counted` and so on.
";

const HEAD_AARCH64: &str = "\
# The papers' experiments on a 64-bit processor of ARM

As [guest-papers](guest-papers.md), which explains the columns, on an emulated `cortex-a53` with instructions for AES, by which the core alone is quicker than the module at nearly all sizes. By counted instructions, 2 ns each, which is not what a processor takes for each; nothing was run on silicon. Again: `cargo xtask figures aarch64/aes-128-encrypt-counted` and so on.
";

const HEAD_VIRTIO: &str = "\
# The papers' experiments with a module that programs drive themselves

As [guest-papers](guest-papers.md), which explains the columns, but with a virtio-crypto device that Evener drives itself through VFIO ([virtio](../design/virtio.md)). Again: `cargo xtask figures virtio/aes-128-encrypt-counted` and so on.
";

const HEAD: &str = "\
# The papers' experiments, live in the guest

One emulated core without AES instructions, QEMU's virtio-crypto module behind Linux's AF_ALG ([testbed](../design/testbed.md)). Absolute figures of an emulated core mean nothing: all are ratios within one run, beside the same ratio of
the papers' board. Again: `cargo xtask figures NAME`, `cargo xtask guest`; the page alone: `cargo xtask figures guest-papers`.
";
