//! Two contexts that are called alike.

use std::fmt::Debug;

use super::Libraries;
use crate::ffi::{Answer, Cipher, Context, Octets, SPARE_BYTES, errors};

/// One context in each library, and what was called so far.
pub(super) struct ContextPair {
    pub(super) plain: Context,
    pub(super) evener: Context,
    calls_so_far: Vec<String>,
    /// Bytes of the message that went in, and that came out; `None` once a call was refused.
    so_far: Option<(usize, usize)>,
}

/// Where a call reads and writes.
#[derive(Clone, Copy, Debug)]
pub(super) enum Layout {
    InPlace,
    Apart,
    /// The output begins this many bytes before the input.
    Before(usize),
    /// The output begins this many bytes behind the start of the input.
    Behind(usize),
    /// No output: associated data.
    Nowhere,
}

impl ContextPair {
    /// Both begin with the cipher `name`, the key and the IV; `None` where one of the libraries has none of that name.
    pub(super) fn begin(
        libraries: Libraries,
        title: String,
        name: &str,
        key: &Octets,
        iv: &Octets,
        encrypts: bool,
    ) -> Option<Self> {
        let ciphers = [libraries.plain, libraries.evener].map(|library| Cipher::fetch(library, name));
        let mut pair = Self {
            plain: Context::new(),
            evener: Context::new(),
            calls_so_far: vec![title],
            so_far: Some((0, 0)),
        };
        pair.same(&format!("fetch {name}"), ciphers[0].is_some(), ciphers[1].is_some());
        let [Some(plain), Some(evener)] = ciphers else { return None };
        pair.same(
            "its lengths",
            (plain.key_bytes(), plain.iv_bytes()),
            (evener.key_bytes(), evener.iv_bytes()),
        );
        let codes = (
            pair.plain.init(Some(&plain), Some(key), Some(iv), Some(encrypts)),
            pair.evener.init(Some(&evener), Some(key), Some(iv), Some(encrypts)),
        );
        pair.same(&format!("init, encrypts: {encrypts}"), codes.0, codes.1);
        Some(pair)
    }

    /// An init comes, which forgets what is held back.
    pub(super) fn begins(&mut self) {
        self.so_far = Some((0, 0));
    }

    /// Copies of both, with the same past; `None` where libcrypto copies neither.
    pub(super) fn copy(&mut self) -> Option<Self> {
        let copies = (self.plain.copy(), self.evener.copy());
        self.same("copy", copies.0.is_some(), copies.1.is_some());
        Some(Self {
            plain: copies.0?,
            evener: copies.1?,
            calls_so_far: self.calls_so_far.clone(),
            so_far: self.so_far,
        })
    }

    /// All calls so far.
    pub(super) fn calls_so_far(&self) -> &[String] {
        &self.calls_so_far
    }

    /// Makes the same call of both and fails where the answers differ.
    pub(super) fn both<T: PartialEq + Debug>(&mut self, step: &str, call: impl Fn(&mut Context) -> T) -> T {
        errors();
        let plain = (call(&mut self.plain), errors());
        let evener = (call(&mut self.evener), errors());
        self.same(step, plain, evener).0
    }

    fn same<T: PartialEq + Debug>(&mut self, step: &str, plain: T, evener: T) -> T {
        self.calls_so_far.push(step.to_owned());
        assert!(plain == evener, "default: {plain:?}\nevener: {evener:?}\nafter {:#?}", self.calls_so_far);
        plain
    }

    /// Whether OpenSSL writes over input that it has not read: what comes out first is what it has held back of a block.
    pub(super) fn destroys(&self, layout: Layout, block_bytes: usize) -> bool {
        let held = if block_bytes == 1 { Some(0) } else { self.so_far.map(|(taken, made)| taken - made) };
        match layout {
            Layout::Apart | Layout::Nowhere => false,
            Layout::Behind(_) => true,
            Layout::InPlace => held != Some(0),
            Layout::Before(bytes) => held.is_none_or(|held| held > bytes),
        }
    }

    /// Runs `input` through both. Returns the answer and what came out, as much as the answer says.
    pub(super) fn update(&mut self, input: &[u8], layout: Layout) -> (Answer, Vec<u8>) {
        let (from, to) = match layout {
            Layout::InPlace | Layout::Nowhere => (MARGIN, MARGIN),
            Layout::Apart => (MARGIN, 2 * MARGIN + input.len()),
            Layout::Before(bytes) => (MARGIN + bytes, MARGIN),
            Layout::Behind(bytes) => (MARGIN, MARGIN + bytes),
        };
        let range = from..from + input.len();
        let output = (!matches!(layout, Layout::Nowhere)).then_some(to);
        let step = format!("update of {} bytes, {layout:?}", input.len());
        let (answer, made) = self.compared(&step, to, arena(input, from, to), |context, space| {
            context.update(space, range.clone(), output)
        });
        self.so_far = self
            .so_far
            .map(|(taken, so_far)| (taken + input.len(), so_far + made.len()))
            .filter(|(taken, so_far)| answer.code == 1 && so_far <= taken);
        (answer, made)
    }

    /// Runs a record through both, by the call that libssl makes if `by_cipher`. What comes out includes all of `space`,
    /// which stands behind the record.
    pub(super) fn record(&mut self, record: &[u8], by_cipher: bool) -> (Answer, Vec<u8>) {
        let range = MARGIN..MARGIN + record.len();
        let step = format!("record of {} bytes, by EVP_Cipher: {by_cipher}", record.len());
        self.compared(&step, MARGIN, arena(record, MARGIN, MARGIN), |context, space| match by_cipher {
            false => context.update(space, range.clone(), Some(MARGIN)),
            true => {
                let code = context.record(space, range.clone(), MARGIN);
                Answer { code, bytes: code }
            }
        })
    }

    /// Ends the message.
    pub(super) fn finish(&mut self) -> (Answer, Vec<u8>) {
        self.so_far = None;
        self.compared("finish", MARGIN, arena(&[], MARGIN, MARGIN), |context, space| {
            context.finish(space, MARGIN)
        })
    }

    /// Calls both with an arena each and compares answer and arena, all of it.
    fn compared(
        &mut self,
        step: &str,
        to: usize,
        mut space: Vec<u8>,
        call: impl Fn(&mut Context, &mut [u8]) -> Answer,
    ) -> (Answer, Vec<u8>) {
        let mut other = space.clone();
        errors();
        let plain = (call(&mut self.plain, &mut space), errors());
        let evener = (call(&mut self.evener, &mut other), errors());
        let (answer, _) = self.same(step, plain, evener);
        let differs = space.iter().zip(&other).position(|(one, other)| one != other);
        self.same(&format!("what it wrote, from byte {to} of the arena: {answer:?}"), None, differs);
        let written = usize::try_from(answer.bytes).unwrap_or(0).min(space.len() - to);
        (answer, space[to..to + written].to_vec())
    }
}

/// Bytes before and behind all that a call may touch, which must stay as they are.
const MARGIN: usize = SPARE_BYTES;

/// `input` at `from`, and a pattern everywhere else.
fn arena(input: &[u8], from: usize, to: usize) -> Vec<u8> {
    let mut made = vec![0xA5; from.max(to) + input.len() + SPARE_BYTES + MARGIN];
    made[from..from + input.len()].copy_from_slice(input);
    made
}
