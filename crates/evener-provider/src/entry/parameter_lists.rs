//! The functions that query the inner provider's lists of parameters: for ciphers, digests, generators and key objects alike.
//!
//! Each is there once per slot, for the core passes no context of ours. `row_of` of the file that uses these finds the row.

/// Lists of a method or a key object: `name: field of the row`.
macro_rules! method_lists {
    ($($function:ident: $inner:ident),* $(,)?) => {
        $crate::ffi::dispatch! {$(
            pub(super) fn $function[SLOT](provctx: *mut std::ffi::c_void) -> *const evener_ossl_sys::Param {
                let Some(row) = row_of(provctx, SLOT) else { return std::ptr::null() };
                let Some(inner) = row.$inner else { return std::ptr::null() };
                // SAFETY: the inner function with the inner provider's context.
                unsafe { inner(row.provider) }
            }
        )*}
    };
}
pub(super) use method_lists;

/// Lists of a context.
macro_rules! context_lists {
    ($($function:ident: $inner:ident),* $(,)?) => {
        $crate::ffi::dispatch! {$(
            fn $function[SLOT](
                ctx: *mut std::ffi::c_void, provctx: *mut std::ffi::c_void,
            ) -> *const evener_ossl_sys::Param {
                let Some(row) = row_of(provctx, SLOT) else { return std::ptr::null() };
                let Some(inner) = row.$inner else { return std::ptr::null() };
                // SAFETY: the inner function with the inner provider's context; the other is the inner provider's, or null.
                unsafe { inner(ctx, row.provider) }
            }
        )*}
    };
}
pub(super) use context_lists;
