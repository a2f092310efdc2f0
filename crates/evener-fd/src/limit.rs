//! The longest file that this process may make (`RLIMIT_FSIZE`: `ulimit -f`, systemd's `LimitFSIZE=`).

use std::io;
use std::mem::MaybeUninit;

/// Says whether a file, also one without a name (`memfd_create`), may be made `bytes` long.
///
/// A program that extends one beyond the limit gets `SIGXFSZ`, which ends a program that does not expect it. So code that makes a file that the
/// program does not know of checks first.
///
/// # Errors
///
/// `EFBIG` where it may not, as the call itself says where the signal is ignored.
pub fn may_extend_to(bytes: u64) -> io::Result<()> {
    let mut limit = MaybeUninit::<libc::rlimit>::uninit();
    // SAFETY: the place has the size that the call fills.
    if unsafe { libc::getrlimit(libc::RLIMIT_FSIZE, limit.as_mut_ptr()) } != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the call succeeded, so it filled the place.
    let limit = unsafe { limit.assume_init() };
    // Systems differ in its type.
    if i128::from(bytes) <= i128::from(limit.rlim_cur) {
        Ok(())
    } else {
        Err(io::Error::from_raw_os_error(libc::EFBIG))
    }
}
