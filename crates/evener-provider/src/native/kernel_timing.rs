//! AES-GCM by a kernel of ours against the inner cipher, in turns, in the thread of a caller that has spent ten times as much on it.

use std::ptr;

use evener::SystemClock;
use evener_core::Nanos;
use evener_core::driver::Clock as _;
use evener_core::job::Memory;
use evener_kernels::Level;

use super::gcm::GcmContext;
use crate::inner_cipher::call::{Init, Update};
use crate::inner_cipher::context::OwnContext;
use crate::state::rows::CipherRow;

/// Messages that are compared: bytes, and how many hundredths of the inner cipher's time the kernel may take. A short one, which through EVP takes 2.5
/// times what the inner functions take of it (64 bytes: 220 of 84 ns, the core of `docs/results/kernels.md`), so that five hundredths more are two; one of a network's; one of a file's. What is alike stays OpenSSL's.
const LENGTHS: [(usize, u64); 3] = [(64, 105), (1_350, 98), (16_384, 98)];
/// Turns, of which the quickest counts, for each length, direction and way. Assumed, not measured: 9, of which one is undisturbed even where
/// the core is shared.
const TURNS: usize = 9;
/// Bytes of one turn, so that it takes ten microseconds about and the clock's own steps do not show.
const TURN_BYTES: usize = 32_768;
const TURN_MESSAGES_MAX: usize = 128;

/// Whole rounds of the widest kernel (64 blocks), single blocks and a part of one.
const KNOWN_BYTES: usize = 1_350;

const AAD: [u8; 13] = [0; 13];

/// Whether the kernel is quicker at every length, in both directions, and computes the same.
pub(super) fn kernel_wins(row: &CipherRow, kernel: (Level, usize)) -> bool {
    let Some(mut pair) = Pair::new(row, kernel) else { return false };
    LENGTHS.iter().all(|&(bytes, hundredths_max)| {
        let agrees = pair.agrees(bytes);
        let mut hundredths =
            [true, false].into_iter().map(|encrypts| pair.kernel_hundredths(bytes, encrypts));
        agrees
            && hundredths.all(|hundredths| hundredths.is_some_and(|hundredths| hundredths <= hundredths_max))
    })
}

/// Whether the kernel computes the same as the inner cipher, of a message that goes through all that it has.
pub(super) fn kernel_is_right(row: &CipherRow, kernel: (Level, usize)) -> bool {
    Pair::new(row, kernel).is_some_and(|mut pair| pair.agrees(KNOWN_BYTES))
}

/// Both ways with one key, which is none of a program's.
struct Pair<'r> {
    kernel: GcmContext,
    inner: OwnContext<'r>,
    text: Vec<u8>,
    nonce: [u8; 12],
}

impl<'r> Pair<'r> {
    fn new(row: &'r CipherRow, (level, key_bytes): (Level, usize)) -> Option<Self> {
        let key = vec![0x5a; key_bytes];
        let mut kernel = GcmContext::new(row, (level, key_bytes));
        let init = Init::of(true, (key.as_ptr(), key_bytes), (ptr::null(), 0), ptr::null());
        kernel.init(&init).ok()?;
        let inner = OwnContext::new(row)?;
        let text = vec![0; LENGTHS.map(|(bytes, _)| bytes).into_iter().max()?];
        inner.inner().init(true, Some(&key), None).then_some(Self { kernel, inner, text, nonce: [0; 12] })
    }

    /// Whether text and tag of one message are the same by both.
    fn agrees(&mut self, bytes: usize) -> bool {
        self.text.fill(0xa5);
        let by_kernel = self.by_kernel(bytes, true).then(|| (self.text.clone(), self.kernel.made_tag()));
        self.text.fill(0xa5);
        let by_inner = self.by_inner(bytes, true).then(|| self.inner.inner().tag()).flatten();
        by_kernel.is_some_and(|(text, tag)| tag.is_some() && text == self.text && tag == by_inner)
    }

    /// The kernel's time in hundredths of the inner cipher's; `None` where one of them failed.
    fn kernel_hundredths(&mut self, bytes: usize, encrypts: bool) -> Option<u64> {
        let (mut kernel, mut inner) = (Nanos(u64::MAX), Nanos(u64::MAX));
        for _ in 0..TURNS {
            kernel = kernel.min(timed(bytes, || self.by_kernel(bytes, encrypts))?);
            inner = inner.min(timed(bytes, || self.by_inner(bytes, encrypts))?);
        }
        kernel.0.saturating_mul(100).checked_div(inner.0)
    }

    /// A message by the kernel; the end of a decryption, for which there is no tag, is left out.
    fn by_kernel(&mut self, bytes: usize, encrypts: bool) -> bool {
        let nonce = (self.nonce.as_ptr(), self.nonce.len());
        let init = Init::of(encrypts, (ptr::null(), 0), nonce, ptr::null());
        let Some(text) = self.text.get_mut(..bytes) else { return false };
        let mut written = 0;
        let aad = Update::of(ptr::null_mut(), &raw mut written, AAD.len(), AAD.as_ptr(), AAD.len());
        let at = text.as_mut_ptr();
        let update = Update::of(at, &raw mut written, bytes, at, bytes);
        let done = self.kernel.init(&init).is_ok()
            && self.kernel.update(&aad).is_ok()
            && self.kernel.update(&update).is_ok();
        let is_over = done && (!encrypts || self.kernel.last().is_ok());
        self.kernel.forget_counts();
        is_over
    }

    /// The same by the inner cipher.
    fn by_inner(&mut self, bytes: usize, encrypts: bool) -> bool {
        let inner = self.inner.inner();
        let Some(space) = self.text.get_mut(..bytes) else { return false };
        let mut memory = Memory::InPlace { space, input_bytes: bytes };
        let done =
            inner.init(encrypts, None, Some(&self.nonce)) && inner.associate(&AAD) && inner.work(&mut memory);
        done && (!encrypts || inner.finish())
    }
}

/// What a turn of messages takes; `None` where one failed.
fn timed(bytes: usize, mut message: impl FnMut() -> bool) -> Option<Nanos> {
    let messages = (TURN_BYTES / bytes).clamp(1, TURN_MESSAGES_MAX);
    let began = SystemClock.now();
    let all = (0..messages).all(|_| message());
    all.then(|| SystemClock.now() - began)
}
