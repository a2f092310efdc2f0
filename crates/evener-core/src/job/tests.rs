//! A job by itself: the space that its output needs, and what it leaves when it fails.

use std::sync::Arc;

use super::*;
use crate::Algorithm;
use crate::job::algorithm::Direction;
use crate::job::session::Padding;

fn cbc(padding: Padding, direction: Direction) -> Arc<Session> {
    Arc::new(Session::new(Algorithm::Aes128Cbc, direction, padding, &[1; 16]).unwrap())
}

#[test]
fn padded_encryption_needs_space_for_one_more_block() {
    let mut memory = [0u8; 47];
    let mut job = Job::in_place(&mut memory);
    job.arm(cbc(Padding::Pkcs7, Direction::Encrypt), &[0; 16], 31);
    assert!(job.lengths_fit());
    job.arm(cbc(Padding::Pkcs7, Direction::Encrypt), &[0; 16], 32);
    assert!(!job.lengths_fit());
    job.arm(cbc(Padding::None, Direction::Encrypt), &[0; 16], 31);
    assert!(!job.lengths_fit());
}

#[test]
fn a_job_that_is_not_authentic_leaves_no_plaintext() {
    let (src, mut dst) = ([9u8; 32], [7u8; 40]);
    let mut job = Job::apart(&src, &mut dst);
    job.arm(cbc(Padding::None, Direction::Decrypt), &[0; 16], 32);
    job.fail(JobError::NotAuthentic);
    assert_eq!(job.output(), b"");
    drop(job);
    assert_eq!(dst[..32], [0; 32]);
    assert_eq!(dst[32..], [7; 8]);
}
