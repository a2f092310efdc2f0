//! Messages by a kernel of ours against the inner cipher, in turns, in the thread of a caller that has spent ten times as much on it.

use std::ptr;

use evener::SystemClock;
use evener_core::Family;
use evener_core::Nanos;
use evener_core::driver::Clock as _;
use evener_core::job::Memory;

use super::blocks::BlockContext;
use super::gcm::GcmContext;
use crate::inner_cipher::call::{Init, Update};
use crate::inner_cipher::context::OwnContext;
use crate::state::rows::{CipherRow, Native};

/// Messages that are compared: bytes, and how many hundredths of the inner cipher's time the kernel may take. A short one, which through EVP takes 2.5
/// times what the inner functions take of it (64 bytes: 220 of 84 ns, the core of `docs/results/kernels.md`), so that five hundredths more are two; one of a network's, in whole blocks but of GCM; one of a file's. What is alike stays OpenSSL's.
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

/// Whether the kernel is quicker at every length, in this direction or of GCM in both, and computes the same.
pub(super) fn kernel_wins(row: &CipherRow, native: Native, encrypts: bool) -> bool {
    let Some(mut pair) = Pair::new(row, native, encrypts) else { return false };
    let directions = if native.family == Family::Gcm { &[true, false][..] } else { &[encrypts] };
    LENGTHS.iter().all(|&(bytes, hundredths_max)| {
        let bytes = pair.length(bytes);
        let agrees = pair.agrees(bytes, encrypts);
        let mut hundredths = directions.iter().map(|&encrypts| pair.kernel_hundredths(bytes, encrypts));
        agrees
            && hundredths.all(|hundredths| hundredths.is_some_and(|hundredths| hundredths <= hundredths_max))
    })
}

/// Whether the kernel computes the same as the inner cipher, of a message that goes through all that it has.
pub(super) fn kernel_is_right(row: &CipherRow, native: Native, encrypts: bool) -> bool {
    Pair::new(row, native, encrypts).is_some_and(|mut pair| pair.agrees(pair.length(KNOWN_BYTES), encrypts))
}

/// A context of a kernel's.
enum Kernel {
    Gcm(Box<GcmContext>),
    Blocks(Box<BlockContext>),
}

impl Kernel {
    /// One with a key.
    fn new(row: &CipherRow, native: Native, encrypts: bool, key: &[u8]) -> Option<Self> {
        let init = Init::of(encrypts, (key.as_ptr(), key.len()), (ptr::null(), 0), ptr::null());
        if native.family == Family::Gcm {
            let mut context = Box::new(GcmContext::new(row, native));
            context.leave_unchecked();
            return context.init(&init).is_ok().then_some(Self::Gcm(context));
        }
        let mut context = Box::new(BlockContext::new(row, native));
        context.leave_unchecked();
        context.note_padding(false);
        context.init(&init).map(|()| Self::Blocks(context))
    }

    /// A message in place; the end of a decryption of GCM, for which there is no tag, is left out.
    fn message(&mut self, encrypts: bool, iv: &[u8], text: &mut [u8]) -> bool {
        let init = Init::of(encrypts, (ptr::null(), 0), (iv.as_ptr(), iv.len()), ptr::null());
        let (mut written, at, bytes) = (0, text.as_mut_ptr(), text.len());
        let update = Update::of(at, &raw mut written, bytes, at, bytes);
        match self {
            Self::Gcm(context) => {
                let aad = Update::of(ptr::null_mut(), &raw mut written, AAD.len(), AAD.as_ptr(), AAD.len());
                let done = context.init(&init).is_ok()
                    && context.update(&aad).is_ok()
                    && context.update(&update).is_ok();
                let is_over = done && (!encrypts || context.last().is_ok());
                context.forget_counts();
                is_over
            }
            Self::Blocks(context) => {
                let is_over = context.init(&init).is_some()
                    && (context.went_straight(&update) || context.update(&update) == Some(bytes));
                context.forget_counts();
                is_over
            }
        }
    }

    /// The tag of a message that was encrypted.
    fn tag(&self) -> Option<[u8; 16]> {
        if let Self::Gcm(context) = self { context.made_tag() } else { None }
    }
}

/// Both ways with one key, which is none of a program's.
struct Pair<'r> {
    kernel: Kernel,
    inner: OwnContext<'r>,
    family: Family,
    text: Vec<u8>,
    iv: &'static [u8],
}

impl<'r> Pair<'r> {
    fn new(row: &'r CipherRow, native: Native, encrypts: bool) -> Option<Self> {
        // No two halves are the same, as XTS has it.
        let key: Vec<u8> = (0x5a..).take(native.key_bytes).collect();
        let kernel = Kernel::new(row, native, encrypts, &key)?;
        let inner = OwnContext::new(row)?;
        let is_keyed = inner.inner().init(encrypts, Some(&key), None);
        let is_padded = matches!(native.family, Family::Ecb | Family::Cbc);
        if !is_keyed || is_padded && !inner.inner().set_padding(false) {
            return None;
        }
        let text = vec![0; LENGTHS.map(|(bytes, _)| bytes).into_iter().max()?];
        let iv: &[u8] = if native.family == Family::Gcm { &[0; 12] } else { &[0; 16] };
        Some(Self { kernel, inner, family: native.family, text, iv })
    }

    /// A length that messages of this mode may have.
    fn length(&self, bytes: usize) -> usize {
        if self.family == Family::Gcm { bytes } else { bytes / 16 * 16 }
    }

    /// Whether text and tag of one message are the same by both.
    fn agrees(&mut self, bytes: usize, encrypts: bool) -> bool {
        self.text.fill(0xa5);
        let by_kernel = self.by_kernel(bytes, encrypts).then(|| (self.text.clone(), self.kernel.tag()));
        self.text.fill(0xa5);
        let by_inner = self.by_inner(bytes, encrypts);
        let tag = if self.family == Family::Gcm { self.inner.inner().tag() } else { None };
        let has_tag = tag.is_some() == (self.family == Family::Gcm);
        by_inner
            && has_tag
            && by_kernel.is_some_and(|(text, by_kernel)| text == self.text && tag == by_kernel)
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

    /// A message by the kernel.
    fn by_kernel(&mut self, bytes: usize, encrypts: bool) -> bool {
        self.text.get_mut(..bytes).is_some_and(|text| self.kernel.message(encrypts, self.iv, text))
    }

    /// The same by the inner cipher.
    fn by_inner(&mut self, bytes: usize, encrypts: bool) -> bool {
        let inner = self.inner.inner();
        let Some(space) = self.text.get_mut(..bytes) else { return false };
        let mut memory = Memory::InPlace { space, input_bytes: bytes };
        let iv = (self.family != Family::Ecb).then_some(self.iv);
        let is_gcm = self.family == Family::Gcm;
        let is_begun = inner.init(encrypts, None, iv) && (!is_gcm || inner.associate(&AAD));
        is_begun && inner.work(&mut memory) && (!encrypts || !is_gcm || inner.finish())
    }
}

/// What a turn of messages takes; `None` where one failed.
fn timed(bytes: usize, mut message: impl FnMut() -> bool) -> Option<Nanos> {
    let messages = (TURN_BYTES / bytes).clamp(1, TURN_MESSAGES_MAX);
    let began = SystemClock.now();
    let all = (0..messages).all(|_| message());
    all.then(|| SystemClock.now() - began)
}
