//! A descriptor that the user named by its number, as in `/dev/fd/3`.

use std::io;
use std::os::fd::{BorrowedFd, OwnedFd, RawFd};

use crate::was_closed;

/// Makes another descriptor of the open file at `number`, so that offsets and flags are shared with who opened it.
///
/// # Errors
///
/// `EBADF` where there is none, or was none when the program was started.
pub fn duplicate(number: RawFd) -> io::Result<OwnedFd> {
    if number < 0 || was_closed(number) {
        return Err(io::Error::from_raw_os_error(libc::EBADF));
    }
    // SAFETY: not negative; where it is not open the call below says so, and nothing rests on which file it is.
    unsafe { BorrowedFd::borrow_raw(number) }.try_clone_to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_without_a_file_is_an_error_and_no_other_file() {
        for number in [-1, 1_000_000] {
            assert_eq!(duplicate(number).unwrap_err().raw_os_error(), Some(libc::EBADF), "{number}");
        }
        assert!(duplicate(2).is_ok());
    }
}
