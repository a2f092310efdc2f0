//! What ciphers, digests, generators and key objects have alike: the table of an operation that is passed through, and the functions that ask the
//! inner provider which parameters there are.
//!
//! Each function is there once per slot, for the core passes no context of ours. `row_of` of the file that uses these finds the row.

/// The functions of a table that there are once per slot: `NUMBER function: type`, in a list.
macro_rules! entries {
    ($slot:ident; $($number:ident $function:ident: $type:ident),+ $(,)?) => {
        vec![$($crate::inner_provider::dispatch_table::entry_at!($slot, $number, $function: $type)),+]
    };
}
pub(super) use entries;

/// An operation whose functions are passed through: `NUMBER function: type = field of the row`, and `[?]` behind a field that no row does without.
///
/// Writes `row` (the inner functions), `replacements` (ours, in their place) and `row_of` (the row that one of ours is called for).
macro_rules! passed_through {
    ($row:ident in $rows:ident; $($number:ident $function:ident: $type:ident = $inner:ident $([$needed:tt])?),+ $(,)?) => {
        fn row(
            provider: *mut std::ffi::c_void, functions: &[evener_ossl_sys::Dispatch],
        ) -> Option<$row> {
            Some($row { provider, $($inner: $crate::core::find!(functions, $number: $type) $($needed)?),+ })
        }

        fn replacements(slot: usize) -> Vec<(std::ffi::c_int, evener_ossl_sys::Function)> {
            $crate::entry::parameter_lists::entries![slot; $($number $function: $type),+]
        }

        fn row_of<'p>(provctx: *mut std::ffi::c_void, slot: usize) -> Option<&'p $row> {
            $crate::entry::provider_of(provctx)?.bound()?.$rows.rows.get(slot)
        }
    };
}
pub(super) use passed_through;

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
