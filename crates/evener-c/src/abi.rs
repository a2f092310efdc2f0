//! Structs and constants as `include/evener.h` has them. `tests/programs.rs` compares both, and both with what was
//! released.

use std::ffi::{c_char, c_void};
use std::ptr;

use crate::session::Session;

/// `struct evener_job`.
#[derive(Debug)]
#[repr(C)]
pub struct Job {
    /// The session, as a handle.
    pub session: *const Session,
    /// Input.
    pub src: *const c_void,
    /// Bytes of input.
    pub src_len: usize,
    /// Output: the input's own place, or one that does not overlap it; null for hashes.
    pub dst: *mut c_void,
    /// Bytes that may be written there.
    pub dst_space: usize,
    /// Associated data.
    pub aad: *const c_void,
    /// Bytes of it.
    pub aad_len: usize,
    /// IV, nonce, counter or tweak.
    pub iv: [u8; 16],
    /// In where an AEAD decrypts; out otherwise.
    pub tag: [u8; 64],
    /// The program's.
    pub user_data: u64,
    /// Out: bytes of output.
    pub written: usize,
    /// Out: 0, or an [`Error`](crate::Error).
    pub status: i32,
    /// Zero, as the next.
    pub reserved0: u32,
    /// Zero.
    pub reserved: [u64; 4],
}

impl Job {
    /// One of zeros, as C makes it.
    pub const ZERO: Self = Self {
        session: ptr::null(),
        src: ptr::null(),
        src_len: 0,
        dst: ptr::null_mut(),
        dst_space: 0,
        aad: ptr::null(),
        aad_len: 0,
        iv: [0; 16],
        tag: [0; 64],
        user_data: 0,
        written: 0,
        status: 0,
        reserved0: 0,
        reserved: [0; 4],
    };
}

/// `struct evener_options`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Options {
    /// Bytes of the struct that the program has.
    pub size: usize,
    /// Worker threads, or [`THREADS_ALL`].
    pub threads: i32,
    /// [`NO_COST_CACHE`].
    pub flags: u32,
    /// Names, null at the end; or null.
    pub modules: *const *const c_char,
    /// A name, or null.
    pub policy: *const c_char,
}

/// `struct evener_statistics`.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct Statistics {
    /// Bytes of the struct that the program has.
    pub size: usize,
    /// Finished well.
    pub jobs: u64,
    /// Input of those.
    pub bytes: u64,
    /// Finished badly.
    pub failed: u64,
    /// In multi-buffer lanes.
    pub lane_jobs: u64,
    /// Input of those.
    pub lane_bytes: u64,
    /// On modules.
    pub module_jobs: u64,
    /// Input of those.
    pub module_bytes: u64,
    /// Failed on a module and done again on a core.
    pub redone: u64,
    /// Results of modules compared with a core's.
    pub checked: u64,
    /// Modules out of service.
    pub lost_modules: u64,
}

/// As many worker threads as the process may use cores.
pub const THREADS_ALL: i32 = -1;
/// Flag of a session: PKCS#7.
pub const PADDING: u32 = 1;
/// Flag of a runtime: costs are neither read nor written.
pub const NO_COST_CACHE: u32 = 1;
/// Jobs that a queue may have under way.
pub const DEPTH_MAX: u32 = 65_536;
