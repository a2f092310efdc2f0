//! This provider's own errors, on OpenSSL's queue. What an inner function raised is there already and stays alone. Where this provider does what OpenSSL's cipher
//! would have refused, the error is that cipher's: raised by an inner context that is made to refuse as well (`native/gcm/refusal.rs`), or under the number of its
//! library, which stands before the reason's (`core_vset_error`, crypto/provider_core.c).
//!
//! The text of a reason goes along with each error, as its data. Not taken: a table of texts (`get_reason_strings`). OpenSSL unloads it
//! with the last reference to the provider, and where a program frees that after libcrypto's own handler at exit, as the destructor of a
//! C++ global does, it dies of a lock that is gone (`ERR_unload_strings`; OpenSSL 3.0 and 3.5, while 4.0 has no such handler).

use std::ffi::{CStr, CString, c_uint};

use evener_ossl_sys::{CoreErrorMark, CoreNewError, CoreSetErrorDebug, CoreVsetError, number};

use super::{Core, functions};

macro_rules! reasons {
    ($($(#[$doc:meta])* $name:ident = $number:literal, $text:literal;)*) => {
        /// Why something did not go as asked.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum Reason { $($(#[$doc])* $name = $number),* }

        impl Reason {
            /// What it says to people.
            const fn text(self) -> &'static str {
                match self { $(Self::$name => $text),* }
            }
        }
    };
}

reasons! {
    /// A panic reached an entry point: a bug in Evener.
    Panicked = 1, "internal error caught";
    /// Neither an active default provider nor a private one could be had.
    NoDefault = 2, "no default provider to build on";
    /// A key or a variable that is not read.
    UnknownKey = 3, "unknown key in the configuration";
    /// A key whose value says nothing.
    BadValue = 4, "bad value in the configuration";
    /// Part of a message is gone.
    Lost = 5, "work was lost in the middle of a message";
    /// The padding of a TLS record is none: what OpenSSL's cipher says, `PROV_R_CIPHER_OPERATION_FAILED` of `ERR_LIB_PROV`.
    BadRecord = 0x1c80_0066, "";
    /// Something that the configuration asks for and this system does not have.
    Unavailable = 7, "not available on this system";
    /// A call of a pipeline that does not fit its context: numbers, lengths, space, no key.
    Pipes = 8, "the call does not fit the pipeline";
    /// Padding is off, and a message ends within a block.
    PartialBlock = 9, "a message of the pipeline ends within a block";
    /// A message with more text than its mode allows.
    TooLong = 10, "the message is longer than its mode allows";
    /// `malloc` gives nothing, and the reserve is kept for the calls that are under way.
    NoMemory = 11, "out of memory";
    /// A call that OpenSSL's own cipher refuses as well.
    Refused = 12, "the cipher refuses the call";
}

functions! {
    /// The way to OpenSSL's error queue.
    pub(super) struct Errors {
        CORE_NEW_ERROR new: CoreNewError,
        CORE_SET_ERROR_DEBUG debug: CoreSetErrorDebug,
        CORE_VSET_ERROR vset: CoreVsetError,
    }
}

functions! {
    /// Marks on OpenSSL's error queue: what was raised behind one can be taken off again.
    pub(super) struct Marks {
        CORE_SET_ERROR_MARK set: CoreErrorMark,
        CORE_POP_ERROR_TO_MARK pop: CoreErrorMark,
    }
}

impl Core {
    /// Runs `body`, and takes off what it put on the error queue.
    pub(crate) fn quietly<T>(&self, body: impl FnOnce() -> T) -> T {
        let Some(marks) = self.marks else { return body() };
        // SAFETY: the handle is ours.
        unsafe { (marks.set)(self.handle) };
        let answer = body();
        // SAFETY: as above.
        unsafe { (marks.pop)(self.handle) };
        answer
    }

    /// Puts `reason` onto the queue, with `detail` where there is more to say.
    pub(crate) fn raise(&self, reason: Reason, detail: Option<&str>) {
        let Some(errors) = self.errors else { return };
        // The text is a format to the core, and there are no arguments to it.
        let said =
            detail.map_or_else(|| reason.text().to_owned(), |more| format!("{}: {more}", reason.text()));
        let said = CString::new(said.replace('%', "_")).ok().filter(|said| !said.is_empty());
        let said = said.as_deref().map_or(std::ptr::null(), CStr::as_ptr);
        // An empty va_list: x86-64 and 64-bit ARM pass its address, other systems one word that no format looks at.
        let mut arguments = [0_u64; 8];
        // SAFETY: the core's function for its own handle.
        unsafe { (errors.new)(self.handle) };
        // SAFETY: as above; the texts are constant.
        unsafe { (errors.debug)(self.handle, c"evener".as_ptr(), 0, c"".as_ptr()) };
        // SAFETY: as above; the core copies the text, which has no conversion that would look at arguments.
        unsafe { (errors.vset)(self.handle, reason as c_uint, said, arguments.as_mut_ptr().cast()) };
    }
}
