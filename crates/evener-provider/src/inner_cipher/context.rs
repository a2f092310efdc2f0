//! An inner cipher context behind safe calls.

use std::ffi::{CStr, c_uint, c_void};
use std::ops::Range;
use std::{mem, ptr};

use evener_core::job::Memory;
use evener_ossl_sys::{
    CipherInit, PARAM_OCTET_PTR, PARAM_OCTET_STRING, PARAM_UNMODIFIED, PARAM_UNSIGNED_INTEGER, Param,
};

use super::call::{Init, Update};
use crate::ffi::params;
use crate::state::rows::CipherRow;

// SAFETY: what the pointers lead to is constant or the provider itself, which locks what changes.
unsafe impl Sync for CipherRow {}

/// A live inner context of `row`, which nothing else uses while this is used.
#[derive(Clone, Copy)]
pub(crate) struct InnerContext<'r> {
    row: &'r CipherRow,
    ctx: *mut c_void,
}

/// The parameter that says whether a generator made the nonce (`OSSL_CIPHER_PARAM_AEAD_IV_GENERATED`).
pub(crate) const GENERATED: &CStr = c"iv-generated";

/// Whether contexts of `row` answer queries of this name.
pub(crate) fn answers(row: &CipherRow, name: &CStr) -> bool {
    let Some(list) = row.inner.gettable_ctx_params else { return false };
    // SAFETY: the inner function, which gives the list for any context where it is given none.
    let first = unsafe { list(ptr::null_mut(), row.provider) };
    // SAFETY: null or a list of constants of the inner provider's.
    let names = unsafe { params::list(first) };
    params::find(names, name).is_some()
}

/// Whether contexts of `row` take no such list, for a name that they know comes twice in it: so from OpenSSL 4.0 on.
pub(crate) fn refuses_repeats(row: &CipherRow, list: &[Param]) -> bool {
    let is_known =
        |name: &CStr| answers(row, name) || name == c"tlsivfixed" || name == c"tlsivinv" || name == c"tlsaad";
    params::repeated(list).any(is_known)
        && OwnContext::new(row).is_some_and(|own| !own.inner().answers_twice(c"keylen"))
}

impl<'r> InnerContext<'r> {
    /// The context at `ctx`.
    ///
    /// # Safety
    ///
    /// It is one of `row`'s and lives, used by nothing else, as long as what is made here.
    pub(crate) unsafe fn of(row: &'r CipherRow, ctx: *mut c_void) -> Self {
        Self { row, ctx }
    }

    /// Init with a key, an IV, both or neither.
    pub(crate) fn init(self, encrypts: bool, key: Option<&[u8]>, iv: Option<&[u8]>) -> bool {
        let init: CipherInit =
            if encrypts { self.row.inner.encrypt_init } else { self.row.inner.decrypt_init };
        let (key, key_len) = key.map_or((ptr::null(), 0), |key| (key.as_ptr(), key.len()));
        let (iv, iv_len) = iv.map_or((ptr::null(), 0), |iv| (iv.as_ptr(), iv.len()));
        // SAFETY: the inner function with its own context, and lengths that are true.
        unsafe { init(self.ctx, key, key_len, iv, iv_len, ptr::null()) == 1 }
    }

    /// Update with fewer bytes than two blocks; what comes out is thrown away.
    pub(crate) fn feed(self, bytes: &[u8]) -> bool {
        let mut out = [0; 48];
        let mut written = 0;
        debug_assert!(bytes.len() < 32);
        // SAFETY: as above; there is space for the input and a block.
        let done = unsafe {
            (self.row.inner.update)(
                self.ctx,
                out.as_mut_ptr(),
                &raw mut written,
                out.len(),
                bytes.as_ptr(),
                bytes.len(),
            )
        };
        zeroize::Zeroize::zeroize(&mut out);
        done == 1
    }

    /// Update over all of `memory`, from which as much comes out as goes in.
    pub(crate) fn work(self, memory: &mut Memory<'_>) -> bool {
        let (input, out, len) = match memory {
            Memory::InPlace { space, input_bytes } => {
                assert!(*input_bytes <= space.len());
                let at = space.as_mut_ptr();
                (at.cast_const(), at, *input_bytes)
            }
            Memory::Apart { src, dst } => {
                assert!(src.len() <= dst.len());
                (src.as_ptr(), dst.as_mut_ptr(), src.len())
            }
        };
        let mut written = 0;
        // SAFETY: as above; both ends were looked at.
        let done = unsafe { (self.row.inner.update)(self.ctx, out, &raw mut written, len, input, len) };
        done == 1 && written == len
    }

    /// Update over a part of the program's call, whose output begins at `to`; how much came out.
    pub(crate) fn part(self, call: &Update, part: Range<usize>, to: usize) -> Option<usize> {
        assert!(part.end <= call.len && to <= call.space, "within what C lent");
        let mut written = 0;
        // SAFETY: within the input.
        let input = unsafe { call.input.add(part.start) };
        // SAFETY: within the output.
        let out = unsafe { call.out.add(to) };
        // SAFETY: the inner function with its own context; both ends were looked at.
        let done = unsafe {
            (self.row.inner.update)(self.ctx, out, &raw mut written, call.space - to, input, part.len())
        };
        (done == 1).then_some(written)
    }

    /// The IV, counter or tweak that the next block is worked on with.
    pub(crate) fn updated_iv(self) -> Option<[u8; 16]> {
        self.iv_named(c"updated-iv")
    }

    /// That of the message's beginning.
    pub(crate) fn original_iv(self) -> Option<[u8; 16]> {
        self.iv_named(c"iv")
    }

    fn iv_named(self, name: &'static CStr) -> Option<[u8; 16]> {
        let mut iv: *const [u8; 16] = ptr::null();
        // By its address: OpenSSL 3.2 to 3.5 try that first, and leave an error on the queue where it is not wanted.
        let answer = Param { data_size: 0, ..param(name, PARAM_OCTET_PTR, &raw mut iv) };
        if self.query(answer)? != size_of::<[u8; 16]>() {
            return None;
        }
        // SAFETY: the inner context's own IV, of the length that it says, which no thread changes meanwhile.
        unsafe { iv.as_ref() }.copied()
    }

    /// The length of the answer to one question.
    fn query(self, request: Param) -> Option<usize> {
        let mut params = [request, Param::END];
        let get = self.row.inner.get_ctx_params?;
        // SAFETY: the inner function with its own context; the list is ended, with the space that it says.
        let answered = unsafe { get(self.ctx, params.as_mut_ptr()) };
        (answered == 1).then_some(params[0].return_size)
    }

    /// Sets one parameter, which is only read.
    fn set(self, param: Param) -> bool {
        let params = [param, Param::END];
        let answered = self.row.inner.set_ctx_params.map(|set| {
            // SAFETY: as above.
            unsafe { set(self.ctx, params.as_ptr()) }
        });
        answered == Some(1)
    }

    /// What it says of [`GENERATED`].
    pub(crate) fn says_made_nonce(self) -> bool {
        let mut is_made: c_uint = 0;
        let answer = param(GENERATED, PARAM_UNSIGNED_INTEGER, &raw mut is_made);
        self.query(answer).is_some() && is_made == 1
    }

    /// Whether it answers a query for a length that comes twice.
    pub(crate) fn answers_twice(self, name: &'static CStr) -> bool {
        let mut lengths = [0_usize; 2];
        let [one, other] =
            lengths.each_mut().map(|length| param(name, PARAM_UNSIGNED_INTEGER, &raw mut *length));
        let mut params = [one, other, Param::END];
        // SAFETY: the inner function with its own context; the list is ended, with the space that it says.
        self.row.inner.get_ctx_params.is_some_and(|get| unsafe { get(self.ctx, params.as_mut_ptr()) } == 1)
    }

    /// How much space its answer to a query of the program's takes, which has none itself; `None` where it does not answer.
    pub(crate) fn size_of_answer(self, request: &Param) -> Option<usize> {
        if request.data.is_null() { self.query(*request) } else { None }
    }

    /// An init of the program's.
    pub(crate) fn begin(self, call: &Init<'_>) -> bool {
        call.inner(self.row, self.ctx) == 1
    }

    /// A call of the program's that is a message's by itself.
    pub(crate) fn single(self, call: &Update) -> bool {
        self.row.inner.cipher.is_some_and(|cipher| call.inner(cipher, self.ctx) == 1)
    }

    /// Parameters of the program's.
    ///
    /// # Safety
    ///
    /// The list ends, or is null.
    pub(crate) unsafe fn set_list(self, list: *const Param) -> bool {
        // SAFETY: the inner function with its own context; the caller's word.
        self.row.inner.set_ctx_params.is_some_and(|set| unsafe { set(self.ctx, list) } == 1)
    }

    /// Queries of the program's.
    ///
    /// # Safety
    ///
    /// As there.
    pub(crate) unsafe fn answer_list(self, list: *mut Param) -> bool {
        // SAFETY: as above.
        self.row.inner.get_ctx_params.is_some_and(|get| unsafe { get(self.ctx, list) } == 1)
    }

    /// A call of the program's.
    pub(crate) fn update(self, call: &Update) -> bool {
        // SAFETY: the inner function with its own context; the rest is the caller's.
        unsafe {
            (self.row.inner.update)(self.ctx, call.out, call.written, call.space, call.input, call.len) == 1
        }
    }

    /// The end of a message, to the output of `call`.
    pub(crate) fn last(self, call: &Update) -> bool {
        // SAFETY: as above.
        unsafe { (self.row.inner.last)(self.ctx, call.out, call.written, call.space) == 1 }
    }

    /// Whether the last block is padded, as it was set.
    pub(crate) fn padding(self) -> Option<bool> {
        let mut value = 0_u32;
        let answer = self.query(param(c"padding", PARAM_UNSIGNED_INTEGER, &raw mut value))?;
        (answer == size_of::<u32>()).then_some(value != 0)
    }

    /// Associated data.
    pub(crate) fn associate(self, data: &[u8]) -> bool {
        let mut written = 0;
        let (space, len) = (data.len(), data.len());
        // SAFETY: as above; null output says that this is associated data, and yet the space is looked at.
        let done = unsafe {
            (self.row.inner.update)(self.ctx, ptr::null_mut(), &raw mut written, space, data.as_ptr(), len)
        };
        done == 1
    }

    /// Final of a cipher that writes nothing then.
    pub(crate) fn finish(self) -> bool {
        let (mut out, mut written) = ([0; 16], 0);
        // SAFETY: as above; there is space for a block.
        unsafe { (self.row.inner.last)(self.ctx, out.as_mut_ptr(), &raw mut written, out.len()) == 1 }
    }

    /// The tag of an encryption that has ended.
    pub(crate) fn tag(self) -> Option<[u8; 16]> {
        let mut tag = [0_u8; 16];
        let answer = self.query(param(c"tag", PARAM_OCTET_STRING, &raw mut tag))?;
        (answer == tag.len()).then_some(tag)
    }

    /// How many bytes of the tag count; 16 where none was made or given.
    pub(crate) fn tag_bytes(self) -> Option<usize> {
        let mut value = 0_usize;
        let answer = self.query(param(c"taglen", PARAM_UNSIGNED_INTEGER, &raw mut value))?;
        (answer == size_of::<usize>() && value <= 16).then_some(value)
    }

    /// The nonce, of so many bytes.
    pub(crate) fn nonce(self, nonce: &mut [u8]) -> bool {
        let answer = Param { data_size: nonce.len(), ..param(c"iv", PARAM_OCTET_STRING, nonce.as_mut_ptr()) };
        self.query(answer) == Some(nonce.len())
    }

    /// Sets the length of the nonce.
    pub(crate) fn set_nonce_bytes(self, bytes: usize) -> bool {
        let mut value = bytes;
        self.set(param(c"ivlen", PARAM_UNSIGNED_INTEGER, &raw mut value))
    }

    /// Has TLS's nonces made, whose first bytes are these.
    pub(crate) fn set_fixed_nonce(self, fixed: &[u8]) -> bool {
        let first = fixed.as_ptr().cast_mut();
        self.set(Param { data_size: fixed.len(), ..param(c"tlsivfixed", PARAM_OCTET_STRING, first) })
    }

    /// Sets the tag that a decryption is checked against.
    pub(crate) fn set_tag(self, tag: &[u8]) -> bool {
        let first = tag.as_ptr().cast_mut();
        self.set(Param { data_size: tag.len(), ..param(c"tag", PARAM_OCTET_STRING, first) })
    }

    /// Whether the last block is to be padded.
    pub(crate) fn set_padding(self, on: bool) -> bool {
        let mut value = u32::from(on);
        self.set(param(c"padding", PARAM_UNSIGNED_INTEGER, &raw mut value))
    }
}

/// A parameter whose value is what `value` points to.
fn param<T>(key: &'static CStr, data_type: c_uint, value: *mut T) -> Param {
    Param {
        key: key.as_ptr(),
        data_type,
        data: value.cast(),
        data_size: size_of::<T>(),
        return_size: PARAM_UNMODIFIED,
    }
}

/// An inner context of our own, freed with this.
pub(crate) struct OwnContext<'r>(InnerContext<'r>);

// SAFETY: a cipher context belongs to no thread; the thread that has this is the only one that uses it.
unsafe impl Send for OwnContext<'_> {}

impl<'r> OwnContext<'r> {
    /// A new one; `None` where the inner provider refuses.
    pub(crate) fn new(row: &'r CipherRow) -> Option<Self> {
        // SAFETY: the inner function with the inner provider's context.
        let ctx = unsafe { (row.inner.newctx)(row.provider) };
        // SAFETY: just made, and ours until it is freed.
        (!ctx.is_null()).then(|| Self(unsafe { InnerContext::of(row, ctx) }))
    }

    /// A copy, in the state that it is in.
    pub(crate) fn duplicate(&self) -> Option<Self> {
        let dup = self.0.row.inner.dupctx?;
        // SAFETY: the inner function with its own context.
        let ctx = unsafe { dup(self.0.ctx) };
        // SAFETY: just made, and ours until it is freed.
        (!ctx.is_null()).then(|| Self(unsafe { InnerContext::of(self.0.row, ctx) }))
    }

    pub(crate) fn inner(&self) -> InnerContext<'r> {
        self.0
    }

    /// Changes places with the context at `ctx`, which is one of `row`'s.
    pub(crate) fn trade(&mut self, row: &CipherRow, ctx: &mut *mut c_void) {
        assert!(ptr::eq(self.0.row, row), "contexts of one algorithm");
        mem::swap(&mut self.0.ctx, ctx);
    }
}

impl Drop for OwnContext<'_> {
    fn drop(&mut self) {
        // SAFETY: made by `new` and unused from here on. Inner contexts are wiped as they are freed.
        unsafe { (self.0.row.inner.freectx)(self.0.ctx) };
    }
}
