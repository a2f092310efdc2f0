//! What a job that was run comes to for the client: bytes for its memory, or an error number.

use evener_core::{Job, JobError, Outcome};
use evener_driver_kernel::next_iv;
use evener_driver_kernel::ocf::{self, CryptOp};
use rustix::io::Errno;

use crate::wiped::Wiped;

/// What goes to the client: text or digest, and the next IV where it was wanted.
pub(crate) fn result(job: &Job<'_>, op: &CryptOp, text: &[u8], iv: &[u8]) -> Result<Wiped, Errno> {
    match job.outcome() {
        Outcome::Done { .. } => {}
        Outcome::Failed(JobError::BadLength) => return Err(Errno::INVAL),
        _ => return Err(Errno::IO),
    }
    let session = job.session();
    if !session.algorithm().is_cipher() {
        return Ok(job.tag().to_vec().into());
    }
    // With room for the next IV: what grows leaves a copy behind.
    let mut data = Wiped::with_capacity(job.output().len() + iv.len());
    data.extend_from_slice(job.output());
    if let (true, Ok(iv)) = (op.flags & ocf::WRITE_IV != 0, <&[u8; 16]>::try_from(iv)) {
        let last = || job.output().last_chunk().copied().unwrap_or(*iv);
        let next = match text {
            [] => *iv,
            text => next_iv(session.algorithm().family(), iv, text, session.direction()).unwrap_or_else(last),
        };
        data.extend(next);
    }
    Ok(data)
}
