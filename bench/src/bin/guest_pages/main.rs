//! Writes the page of the papers' experiments in the test bed's guest, from what `cargo xtask testbed papers` measured there.
//!
//! The way: reports in a folder (`NAME.json`, [`kept::Kept`]) -> a section for each kind (`policies`, `busy`, `neighbours`,
//! `openssl`, `waits`, `simulated`), the papers' own figures beside ours -> `guest-papers.md` above the folder, pictures inside.
#![forbid(unsafe_code)]

use std::fs;
use std::path::PathBuf;

use anyhow::Context as _;
use clap::Parser;

mod busy;
mod kept;
mod neighbours;
mod openssl;
mod policies;
mod simulated;
mod waits;

/// Draws the page of the papers' experiments in the guest again, from reports that are there.
#[derive(Parser)]
struct Arguments {
    /// Folder with the reports, `docs/results/guest`.
    folder: PathBuf,
}

fn main() -> anyhow::Result<()> {
    let Arguments { folder } = Arguments::parse();
    let all = kept::read(&folder)?;
    anyhow::ensure!(!all.is_empty(), "{} holds no report", folder.display());
    let mut page = HEAD.to_owned();
    page += &policies::section(&all, &folder)?;
    page += &busy::section(&all)?;
    page += &neighbours::section(&all, &folder)?;
    page += &openssl::section(&all, &folder)?;
    page += &waits::section(&all);
    page += &simulated::section(&all);
    page += &kept::circumstances(&all);
    let path = folder.parent().context("the folder lies in another")?.join("guest-papers.md");
    fs::write(&path, page).with_context(|| format!("{}", path.display()))
}

const HEAD: &str = "\
# The papers' experiments, live in the guest

One emulated core without AES instructions, QEMU's virtio-crypto module behind Linux's AF_ALG ([testbed](../testbed.md)): a real driver, real
interrupts, ciphertext compared with libcrypto's. Absolute figures of an emulated core mean nothing, so everything is told as a ratio within one
run, beside the same ratio of the papers' board. Again: `cargo xtask figures` with names of reports (`aes-128-encrypt`, ... as below), OpenSSL's programs and
uploads by `cargo xtask guest`; the page alone: `cargo xtask figures guest-papers`.
";
