//! The module's one symbol and the provider's own functions.

use std::ffi::{c_int, c_void};
use std::mem::transmute;
use std::panic;
use std::ptr;
use std::sync::Once;

use evener_ossl_sys::{
    Algorithm, CoreHandle, Dispatch, Function, GetParams, GettableParams, PARAM_INTEGER, PARAM_UNMODIFIED,
    PARAM_UNSIGNED_INTEGER, PARAM_UTF8_PTR, Param, ProviderQueryOperation, ProviderTeardown, number,
};
use evener_ring::hold_cancellation;

use super::refusal::for_c;
use super::{offers, provider_of, siblings};
use crate::core::Core;
use crate::counters::{self, thread_table};
use crate::ffi::dispatch;
use crate::fork;
use crate::setup;
use crate::state::{Binding, ProvCtx};

/// A table that is only read.
struct Table<T: 'static>(&'static [T]);

// SAFETY: what the entries point to is constant.
unsafe impl<T> Sync for Table<T> {}

macro_rules! entry {
    ($number:ident, $function:ident: $type:ty) => {
        Dispatch {
            function_id: number::$number,
            // SAFETY: the core casts it back to the type that belongs to the number.
            function: Some(unsafe { transmute::<$type, Function>($function) }),
        }
    };
}

static PROVIDER: Table<Dispatch> = Table(&[
    entry!(PROVIDER_TEARDOWN, teardown: ProviderTeardown),
    entry!(PROVIDER_GETTABLE_PARAMS, gettable_params: GettableParams),
    entry!(PROVIDER_GET_PARAMS, get_params: GetParams),
    entry!(PROVIDER_QUERY_OPERATION, query_operation: ProviderQueryOperation),
    Dispatch::END,
]);

const fn gettable(key: &'static std::ffi::CStr, data_type: u32) -> Param {
    Param { key: key.as_ptr(), data_type, data: ptr::null_mut(), data_size: 0, return_size: PARAM_UNMODIFIED }
}

static GETTABLE: Table<Param> = Table(&[
    gettable(c"name", PARAM_UTF8_PTR),
    gettable(c"version", PARAM_UTF8_PTR),
    gettable(c"buildinfo", PARAM_UTF8_PTR),
    gettable(c"status", PARAM_INTEGER),
    gettable(c"evener-binding", PARAM_UTF8_PTR),
    gettable(c"evener-routed", PARAM_UNSIGNED_INTEGER),
    gettable(c"evener-paused", PARAM_UNSIGNED_INTEGER),
    gettable(c"evener-native", PARAM_UNSIGNED_INTEGER),
    gettable(c"evener-wrong-kernels", PARAM_UNSIGNED_INTEGER),
    gettable(c"evener-pipelined", PARAM_UNSIGNED_INTEGER),
    gettable(c"evener-timed", PARAM_UNSIGNED_INTEGER),
    gettable(c"evener-redone", PARAM_UNSIGNED_INTEGER),
    gettable(c"evener-split", PARAM_UNSIGNED_INTEGER),
    Param::END,
]);

/// Calls that might have been combined and whose ends were told.
fn timed(prov: &ProvCtx) -> u32 {
    let combiner = prov.ways().combiner.as_ref();
    let timed = combiner.map_or(0, |combiner| combiner.counts(fork::generation()).timed);
    timed.try_into().unwrap_or(u32::MAX)
}

/// A panic that is caught would still be printed, by a hook of this module's own copy of the standard library.
fn silence_panics() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| panic::set_hook(Box::new(|_| {})));
}

/// Makes a provider, watches its siblings and binds it where it can be.
fn start(core: Core) -> *const ProvCtx {
    let prov = Box::leak(Box::new(setup::provider(core)));
    siblings::register(prov);
    // Now, where it can be, so that later calls find it done; a private one only when the core queries algorithms.
    if prov.binding.siblings.active_default(&prov.core).is_some() {
        offers::bound(prov);
    }
    prov
}

/// Gives back what is held, in the order that the core expects.
fn end(prov: Box<ProvCtx>) {
    siblings::deregister(&prov);
    thread_table::with_current_thread(counters::flush_hashes);
    let ProvCtx { binding: Binding { bound, siblings, .. }, core, .. } = *prov;
    drop(bound);
    siblings.release(&core);
}

dispatch! {
    /// What OpenSSL looks up in the module and calls once per library context.
    ///
    /// # Safety
    ///
    /// As `provider-base(7)` says: the core's handle and table, and space for two addresses.
    #[unsafe(no_mangle)]
    pub fn OSSL_provider_init(
        handle: *const CoreHandle,
        given: *const Dispatch,
        taken: *mut *const Dispatch,
        provctx: *mut *mut c_void,
    ) -> c_int {
        silence_panics();
        // SAFETY: the caller's word.
        let core = unsafe { Core::read(handle, given) };
        let _held = hold_cancellation();
        let Ok(made) = panic::catch_unwind(move || start(core)) else { return 0 };
        // SAFETY: the core gave space for one address.
        unsafe { provctx.write(made.cast_mut().cast()) };
        // SAFETY: as above.
        unsafe { taken.write(PROVIDER.0.as_ptr()) };
        1
    }

    /// Ends the provider in one library context; the core has freed all that was made with it.
    fn teardown(provctx: *mut c_void) {
        if !provctx.is_null() {
            let provctx: *mut ProvCtx = provctx.cast();
            // A caught panic leaks, and there is no core any more to report to.
            let _held = hold_cancellation();
            // SAFETY: made by `start`, and this is the core's last call with it.
            drop(panic::catch_unwind(move || end(unsafe { Box::from_raw(provctx) })));
        }
    }

    /// The core queries which parameters there are.
    fn gettable_params(_provctx: *mut c_void) -> *const Param {
        GETTABLE.0.as_ptr()
    }

    /// The core queries name, version and status.
    fn get_params(provctx: *mut c_void, params: *mut Param) -> c_int {
        let Some(prov) = provider_of(provctx) else { return 0 };
        for_c(&prov.core, || {
            // SAFETY: the core's list, which it ends.
            let params = unsafe { crate::ffi::params::list_mut(params) };
            for param in params {
                // What could not be had is known where it was tried.
                if matches!(crate::ffi::params::key(param).to_bytes(), b"buildinfo" | b"evener-modules") {
                    setup::open_ways(prov);
                }
                match crate::ffi::params::key(param).to_bytes() {
                    b"evener-timed" => _ = crate::ffi::params::answer_number(param, timed(prov)),
                    _ => prov.describe(param),
                }
            }
            Ok(1)
        })
    }

    /// The core queries the algorithms of an operation, once per operation unless the answer says not to store it.
    fn query_operation(provctx: *mut c_void, operation: c_int, no_store: *mut c_int) -> *const Algorithm {
        let Some(prov) = provider_of(provctx) else { return ptr::null() };
        for_c(&prov.core, || {
            let offer = offers::offer(prov, operation);
            if !no_store.is_null() {
                // SAFETY: the core's space for one number.
                unsafe { no_store.write(c_int::from(offer.is_none())) };
            }
            Ok(offer.flatten().unwrap_or_else(ptr::null))
        })
    }
}
