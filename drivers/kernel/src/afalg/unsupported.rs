//! AF_ALG on systems other than Linux, which lack it: the first call fails because the family is unknown.

use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};

#[derive(Clone, Copy, Debug)]
#[expect(dead_code, reason = "as on Linux, where the kernel gets it")]
pub(super) struct Operation<'a> {
    pub(super) encrypts: bool,
    pub(super) iv: &'a [u8],
    pub(super) aad_bytes: Option<u32>,
}

pub(super) fn socket() -> io::Result<OwnedFd> {
    Err(unknown())
}

pub(super) fn bind(_: BorrowedFd<'_>, _: &str, _: &str) -> io::Result<()> {
    Err(unknown())
}

pub(super) fn set_key(_: BorrowedFd<'_>, _: &[u8]) -> io::Result<()> {
    Err(unknown())
}

pub(super) fn set_tag_bytes(_: BorrowedFd<'_>, _: usize) -> io::Result<()> {
    Err(unknown())
}

pub(super) fn accept(_: BorrowedFd<'_>) -> io::Result<OwnedFd> {
    Err(unknown())
}

pub(super) fn send(_: BorrowedFd<'_>, _: Option<Operation<'_>>, _: &[u8], _: bool) -> io::Result<usize> {
    Err(unknown())
}

fn unknown() -> io::Error {
    io::Error::from_raw_os_error(libc::EAFNOSUPPORT)
}
