//! To which default provider this one is bound, in one library context, and tables on its functions.
//!
//! First choice: the program's own, which the core shows to providers that register for their siblings, the other providers of the
//! library context. It may come after us, in any order of the configuration; it is looked for again at each question until it is there,
//! and then siblings are watched no more. Second: a private context in the same libcrypto. Where the `fips` provider is active before
//! that, we stand aside and serve nothing.

pub(crate) mod dispatch_table;

use std::ffi::{CStr, c_int, c_void};
use std::ptr::null_mut;
use std::sync::atomic::{
    AtomicBool, AtomicPtr,
    Ordering::{AcqRel, Acquire, Relaxed},
};

use evener_ossl_sys::{Algorithm, CoreHandle, ProviderQueryOperation, number};

use crate::core::{Core, find};
use crate::ffi::private_libctx::Private;
use crate::ffi::table_of;

/// The siblings that the core has named.
#[derive(Default)]
pub(crate) struct Siblings {
    /// The active default provider, one reference of which is ours. Written under the core's lock.
    default: AtomicPtr<CoreHandle>,
    /// Whether the provider `fips` is active.
    fips: AtomicBool,
}

impl Siblings {
    /// Keeps `sibling` where it is one that matters.
    pub(crate) fn came(&self, core: &Core, sibling: *const CoreHandle) {
        match name(core, sibling) {
            Some(b"default") => self.keep(core, sibling),
            Some(b"fips") => self.fips.store(true, Relaxed),
            _ => {}
        }
    }

    /// Lets `sibling` go.
    pub(crate) fn goes(&self, core: &Core, sibling: *const CoreHandle) {
        if name(core, sibling) == Some(b"fips") {
            self.fips.store(false, Relaxed);
        }
        // A default provider stays referenced: what was built on it may be in use.
    }

    fn keep(&self, core: &Core, sibling: *const CoreHandle) {
        let Some(children) = core.children else { return };
        if !self.default.load(Acquire).is_null() {
            return;
        }
        // The answer is the number of references, 0 on failure.
        // SAFETY: the core shows a live provider; its activation stays the program's business.
        if unsafe { (children.up_ref)(sibling, 0) } <= 0 {
            return;
        }
        // Release: a thread that sees the address may use the provider.
        let before = self.default.compare_exchange(null_mut(), sibling.cast_mut(), AcqRel, Acquire);
        if before.is_err() {
            // SAFETY: gives back the reference taken above.
            unsafe { (children.free)(sibling, 0) };
        }
    }

    /// Whether this provider has to serve nothing.
    pub(crate) fn stand_aside(&self) -> bool {
        self.fips.load(Relaxed)
    }

    /// The program's default provider, if it was ever active.
    pub(crate) fn active_default(&self, core: &Core) -> Option<InnerProvider> {
        let children = core.children?;
        let handle: *const CoreHandle = self.default.load(Acquire);
        if handle.is_null() {
            return None;
        }
        // SAFETY: we hold a reference to that provider.
        let provider_ctx = unsafe { (children.provider_ctx)(handle) };
        // SAFETY: as above.
        let functions = unsafe { (children.dispatch)(handle) };
        // SAFETY: a provider's table lives as long as the provider.
        let functions = unsafe { table_of(functions) };
        let query = find!(functions, PROVIDER_QUERY_OPERATION: ProviderQueryOperation)?;
        Some(InnerProvider { provider_ctx, source: Source::Program(query) })
    }

    /// Gives back what is held.
    pub(crate) fn release(&self, core: &Core) {
        let handle = self.default.swap(null_mut(), AcqRel);
        if let (Some(children), false) = (core.children, handle.is_null()) {
            // SAFETY: the reference that `keep` took.
            unsafe { (children.free)(handle, 0) };
        }
    }
}

fn name<'p>(core: &Core, sibling: *const CoreHandle) -> Option<&'p [u8]> {
    let children = core.children?;
    // SAFETY: the core shows a live provider.
    let name = unsafe { (children.name)(sibling) };
    if name.is_null() {
        return None;
    }
    // SAFETY: the name of a live provider is text that ends in nul.
    Some(unsafe { CStr::from_ptr(name) }.to_bytes())
}

/// The provider whose functions do the work.
pub(crate) struct InnerProvider {
    /// What its functions are called with.
    pub(crate) provider_ctx: *mut c_void,
    source: Source,
}

enum Source {
    Program(ProviderQueryOperation),
    Private(Private),
}

impl InnerProvider {
    /// A default provider of our own in the libcrypto that loaded us.
    pub(crate) fn private(core: &Core) -> Option<Self> {
        let private = Private::open(core.landmark?)?;
        Some(Self { provider_ctx: private.provider_ctx(), source: Source::Private(private) })
    }

    /// Whether it is one of ours, in a program that has none.
    pub(crate) const fn is_private(&self) -> bool {
        matches!(self.source, Source::Private(_))
    }

    /// Its algorithms for `operation`.
    pub(crate) fn query(&self, operation: c_int) -> *const Algorithm {
        match &self.source {
            Source::Program(query) => {
                let mut no_store = 0;
                // SAFETY: the inner provider's function with its own context, and space for one number.
                unsafe { query(self.provider_ctx, operation, &raw mut no_store) }
            }
            Source::Private(private) => private.query(operation),
        }
    }
    /// Which provider it is, for people.
    pub(crate) fn whose(&self) -> &'static CStr {
        match self.source {
            Source::Program(_) => c"the program's default provider",
            Source::Private(_) => c"a default provider of its own",
        }
    }
}
