//! What a look at a descriptor takes, by its mark, and what it would take by its inode.

#![allow(clippy::print_stdout, reason = "it talks to a terminal")]

use std::fs::File;
use std::os::unix::net::UnixStream;
use std::time::Instant;

use evener_fd::CheckedFd;

const LOOKS: u32 = 1_000_000;

/// Nanoseconds of one of many.
fn nanoseconds(mut look: impl FnMut() -> bool) -> u128 {
    let began = Instant::now();
    assert!((0..LOOKS).all(|_| look()), "it is ours all the time");
    began.elapsed().as_nanos() / u128::from(LOOKS)
}

fn main() -> std::io::Result<()> {
    let (ours, _other) = UnixStream::pair()?;
    let file = File::from(std::os::fd::OwnedFd::from(ours.try_clone()?));
    let checked = CheckedFd::new(ours.into())?;
    for _ in 0..5 {
        let by_mark = nanoseconds(|| checked.checked().is_ok());
        let by_inode = nanoseconds(|| file.metadata().is_ok());
        println!("by its mark {by_mark} ns, by its inode {by_inode} ns");
    }
    Ok(())
}
