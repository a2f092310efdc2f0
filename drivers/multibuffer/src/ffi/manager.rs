//! The library on one thread: its manager, in memory of our own that is wiped at the end, and key setup.

use std::ffi::{CStr, c_void};
use std::ptr::{self, NonNull};
use std::sync::Arc;

use evener_core::Hash;
use zeroize::{Zeroize, ZeroizeOnDrop};

use crate::ffi::job_slots::JobSlots;
use crate::ffi::keys::{AesKeys, GcmKeys, HmacKeys, KeySize, address, address_mut};
use crate::ffi::layout::{
    CHACHA_STATE_BYTES, FEATURE_VAES, FEATURES_NEEDED, GCM_STATE_BYTES, ImbManager, OneBlock,
};
use crate::ffi::library::{Library, find_first};
use crate::ffi::memory::Memory;
use crate::unavailable::Unavailable;

/// The library on one thread.
pub(crate) struct Manager {
    /// The library's functions for this processor, as it set them; every one that is used is there.
    pub(super) table: Box<ImbManager>,
    pub(super) job_slots: JobSlots,
    pub(super) states: Box<States>,
    memory: Memory,
    /// Last, so that the code is unmapped when nothing refers to it.
    library: Library,
}

/// Opens the system's library, where this processor can use it.
pub(crate) fn find() -> Result<(), Unavailable> {
    find_first(check_processor)
}

/// Where GCM and ChaCha20-Poly1305 keep what they know between steps of a message.
#[repr(C, align(64))]
#[derive(Zeroize, ZeroizeOnDrop)]
pub(super) struct States {
    pub(super) gcm: [u8; GCM_STATE_BYTES],
    _gap: [u8; 40],
    pub(super) chacha: [u8; CHACHA_STATE_BYTES],
}

impl Manager {
    /// Opens the library of that name and starts a manager for the best instruction set of this processor.
    pub(crate) fn load(name: &CStr) -> Result<Self, Unavailable> {
        let library = Library::open(name)?;
        check_processor(&library)?;
        // SAFETY: the function takes nothing and returns a length.
        let bytes = unsafe { (library.symbols().manager_bytes)() };
        let memory = Memory::zeroed(bytes)?;
        let table = start(&library, &memory)?;
        let job_slots = JobSlots::new(library.release().job_bytes)?;
        let states = States { gcm: [0; GCM_STATE_BYTES], _gap: [0; 40], chacha: [0; CHACHA_STATE_BYTES] };
        Ok(Self { table: Box::new(table), job_slots, states: Box::new(states), memory, library })
    }

    /// As the library writes it: `1.3.0`.
    pub(crate) fn version(&self) -> &str {
        self.library.version()
    }

    /// The instruction set that the library chose: `AVX-512`.
    pub(crate) fn instruction_set(&self) -> &'static str {
        let known = self.library.release().sets.iter();
        known.copied().find(|set| set.0 == self.table.used_set).map_or("unknown instruction set", |set| set.1)
    }

    /// Whether the processor works on several AES blocks in one instruction.
    pub(crate) const fn has_vector_aes(&self) -> bool {
        self.table.features & FEATURE_VAES != 0
    }

    /// Round keys of an AES key of 16, 24 or 32 bytes.
    pub(crate) fn aes_keys(&self, key: &[u8]) -> Arc<AesKeys> {
        let mut keys = Arc::new(AesKeys::empty());
        let made = Arc::get_mut(&mut keys).expect("not shared yet");
        let expand = self.table.expand_key[KeySize::of(key.len()).index()].expect(CHECKED);
        // SAFETY: the function for this key length reads the key and writes at most 15 round keys to each table.
        unsafe { expand(address(key), address_mut(&mut made.encrypt), address_mut(&mut made.decrypt)) };
        keys
    }

    /// What GCM makes of an AES key of 16, 24 or 32 bytes.
    pub(crate) fn gcm_keys(&self, key: &[u8]) -> Arc<GcmKeys> {
        let size = KeySize::of(key.len());
        let mut keys = Arc::new(GcmKeys::empty(size));
        let made = Arc::get_mut(&mut keys).expect("not shared yet");
        let prepare = self.table.gcm_prepare[size.index()].expect(CHECKED);
        // SAFETY: the function for this key length reads the key; the table has space for every known release.
        unsafe { prepare(address(key), address_mut(&mut made.prepared)) };
        keys
    }

    /// States after the first blocks of an HMAC: `inner` and `outer` are the padded key xor 0x36 and 0x5c.
    pub(crate) fn hmac_keys(&self, hash: Hash, inner: &[u8; 64], outer: &[u8; 64]) -> Arc<HmacKeys> {
        let mut keys = Arc::new(HmacKeys::empty());
        let made = Arc::get_mut(&mut keys).expect("not shared yet");
        let one_block = self.one_block(hash);
        // SAFETY: the function reads a block of 64 bytes and writes a digest of at most 32.
        unsafe { one_block(address(inner), address_mut(&mut made.inner)) };
        // SAFETY: as above.
        unsafe { one_block(address(outer), address_mut(&mut made.outer)) };
        keys
    }

    fn one_block(&self, hash: Hash) -> OneBlock {
        let function = match hash {
            Hash::Sha1 => self.table.sha1_one_block,
            Hash::Sha256 => self.table.sha256_one_block,
            Hash::Md5 => self.table.md5_one_block,
        };
        function.expect(CHECKED)
    }

    /// The manager as C takes it.
    pub(super) const fn address(&self) -> *mut ImbManager {
        self.memory.start().as_ptr().cast()
    }

    /// Starts afresh after a refusal, so that the library forgets every address it was given.
    pub(super) fn restart(&mut self) {
        // SAFETY: the memory has the length that the library requires; it is cleared and set up again.
        let placed = unsafe { place(&self.library, &self.memory) };
        debug_assert!(placed.is_some(), "it worked when the manager was made");
    }
}

/// Why a function of the table can be called.
pub(super) const CHECKED: &str = "the table was found complete when it was loaded";

fn check_processor(library: &Library) -> Result<(), Unavailable> {
    // SAFETY: the function takes nothing and returns a set of bits.
    let features = unsafe { (library.symbols().feature_flags)() };
    match FEATURES_NEEDED.iter().find(|needed| features & needed.0 == 0) {
        Some(&(_, lacking)) => Err(Unavailable::LacksFeature { lacking }),
        None => Ok(()),
    }
}

/// Sets a manager up in `memory` and reads its table.
fn start(library: &Library, memory: &Memory) -> Result<ImbManager, Unavailable> {
    // SAFETY: the memory has the length that the library requires.
    let manager =
        unsafe { place(library, memory) }.ok_or(Unavailable::DoesNotStart { code: libc::ENOMEM })?;
    // SAFETY: the start of a manager has this shape in every known release, and is set up.
    let table = unsafe { manager.read() };
    match table.errno {
        0 if is_complete(&table) => Ok(table),
        0 => Err(Unavailable::Incomplete),
        code => Err(Unavailable::DoesNotStart { code }),
    }
}

/// Clears `memory` and sets a manager up in it.
///
/// # Safety
///
/// `memory` is as long as the library says that a manager is, and the library works for this processor.
unsafe fn place(library: &Library, memory: &Memory) -> Option<NonNull<ImbManager>> {
    let symbols = library.symbols();
    let start: *mut c_void = memory.start().as_ptr().cast();
    // SAFETY: the caller's promise; the last argument has the memory cleared.
    let manager = unsafe { (symbols.place_manager)(start, 0, 1) };
    let manager = NonNull::new(manager)?;
    // SAFETY: the manager was placed; no answer is returned.
    unsafe { (symbols.init_auto)(manager.as_ptr(), ptr::null_mut()) };
    Some(manager)
}

/// Whether every function that is used is there.
fn is_complete(table: &ImbManager) -> bool {
    let jobs = [table.next_job, table.submit_job, table.flush_job].iter().all(Option::is_some);
    let blocks =
        [table.sha1_one_block, table.sha256_one_block, table.md5_one_block].iter().all(Option::is_some);
    let gcm = table.gcm_encrypt.iter().chain(&table.gcm_decrypt).all(Option::is_some)
        && table.gcm_prepare.iter().all(Option::is_some);
    let chacha = table.chacha_start.is_some()
        && table.chacha_encrypt.is_some()
        && table.chacha_decrypt.is_some()
        && table.chacha_end.is_some();
    let bursts = table.cipher_burst.is_some() && table.hash_burst.is_some();
    jobs && blocks && gcm && chacha && bursts && table.expand_key.iter().all(Option::is_some)
}
