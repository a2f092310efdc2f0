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

/// An operation whose functions are passed through: `NUMBER function: type` for each that is replaced.
///
/// Writes `row` (the inner functions), `replacements` (ours, in their place) and `row_of` (the row that one of ours is called for).
macro_rules! passed_through {
    ($functions:ident in $rows:ident; $($number:ident $function:ident: $type:ident),+ $(,)?) => {
        fn row(
            provider: *mut std::ffi::c_void, functions: &[evener_ossl_sys::Dispatch],
        ) -> Option<$crate::state::rows::PassedRow<$functions>> {
            Some($crate::state::rows::PassedRow { provider, inner: $functions::of(functions)? })
        }

        fn replacements(slot: usize) -> Vec<(std::ffi::c_int, evener_ossl_sys::Function)> {
            $crate::entry::parameter_lists::entries![slot; $($number $function: $type),+]
        }

        fn row_of<'p>(provctx: *mut std::ffi::c_void, slot: usize) -> Option<&'p $crate::state::rows::PassedRow<$functions>> {
            $crate::entry::provider_of(provctx)?.bound()?.$rows.rows.get(slot)
        }
    };
}
pub(super) use passed_through;

/// Lists of a method or a key object, each by its name in the row.
macro_rules! method_lists {
    ($($function:ident),* $(,)?) => {
        $crate::ffi::dispatch! {$(
            pub(super) fn $function[SLOT](provctx: *mut std::ffi::c_void) -> *const evener_ossl_sys::Param {
                let Some(row) = row_of(provctx, SLOT) else { return std::ptr::null() };
                let Some(inner) = row.inner.$function else { return std::ptr::null() };
                // SAFETY: the inner function with the inner provider's context.
                unsafe { inner(row.provider) }
            }
        )*}
    };
}
pub(super) use method_lists;

/// Lists of a context.
macro_rules! context_lists {
    ($($function:ident),* $(,)?) => {
        $crate::ffi::dispatch! {$(
            fn $function[SLOT](
                ctx: *mut std::ffi::c_void, provctx: *mut std::ffi::c_void,
            ) -> *const evener_ossl_sys::Param {
                let Some(row) = row_of(provctx, SLOT) else { return std::ptr::null() };
                let Some(inner) = row.inner.$function else { return std::ptr::null() };
                // SAFETY: the inner function with the inner provider's context; the other is the inner provider's, or null.
                unsafe { inner(ctx, row.provider) }
            }
        )*}
    };
}
pub(super) use context_lists;

/// What the inner provider's init with a key object gets from C, but its context.
#[derive(Clone, Copy)]
pub(super) struct KeyObjectInit {
    pub(super) key: *mut std::ffi::c_void,
    pub(super) iv: *const std::ffi::c_uchar,
    pub(super) iv_len: usize,
    pub(super) params: *const evener_ossl_sys::Param,
}

/// The inits of a cipher with a key object, both by `skey_init` of the file that uses this.
macro_rules! key_object_inits {
    ($($function:ident),*) => {
        $crate::ffi::dispatch! {$(
            fn $function(
                ctx: *mut std::ffi::c_void, key: *mut std::ffi::c_void, iv: *const std::ffi::c_uchar, iv_len: usize,
                params: *const evener_ossl_sys::Param,
            ) -> std::ffi::c_int {
                let call = $crate::entry::parameter_lists::KeyObjectInit { key, iv, iv_len, params };
                // SAFETY: the caller's arguments, as they came.
                unsafe { skey_init(ctx, |row| row.inner.$function, call) }
            }
        )*}
    };
}
pub(super) use key_object_inits;

/// The functions that stand in a cipher's table instead of the inner ones, each by its name in the file that uses this.
macro_rules! cipher_functions {
    () => {
        /// The functions that stand in a cipher's table instead of the inner ones.
        pub(crate) fn replacements(slot: usize) -> Vec<(std::ffi::c_int, evener_ossl_sys::Function)> {
            let mut functions = $crate::entry::parameter_lists::entries![slot;
                CIPHER_NEWCTX newctx: NewCtx,
                CIPHER_GETTABLE_PARAMS gettable_params: GettableParams,
                CIPHER_SETTABLE_CTX_PARAMS settable_ctx_params: CtxParamsList,
                CIPHER_GETTABLE_CTX_PARAMS gettable_ctx_params: CtxParamsList,
            ];
            functions.extend([
                (evener_ossl_sys::number::CIPHER_ENCRYPT_INIT, $crate::inner_provider::dispatch_table::erased!(init::<1>, evener_ossl_sys::CipherInit)),
                (evener_ossl_sys::number::CIPHER_DECRYPT_INIT, $crate::inner_provider::dispatch_table::erased!(init::<0>, evener_ossl_sys::CipherInit)),
                (evener_ossl_sys::number::CIPHER_ENCRYPT_SKEY_INIT, $crate::inner_provider::dispatch_table::erased!(encrypt_skey_init, evener_ossl_sys::CipherSkeyInit)),
                (evener_ossl_sys::number::CIPHER_DECRYPT_SKEY_INIT, $crate::inner_provider::dispatch_table::erased!(decrypt_skey_init, evener_ossl_sys::CipherSkeyInit)),
                (evener_ossl_sys::number::CIPHER_UPDATE, $crate::inner_provider::dispatch_table::erased!(update, evener_ossl_sys::CipherUpdate)),
                (evener_ossl_sys::number::CIPHER_CIPHER, $crate::inner_provider::dispatch_table::erased!(cipher, evener_ossl_sys::CipherUpdate)),
                (evener_ossl_sys::number::CIPHER_FINAL, $crate::inner_provider::dispatch_table::erased!(last, evener_ossl_sys::CipherFinal)),
                (evener_ossl_sys::number::CIPHER_FREECTX, $crate::inner_provider::dispatch_table::erased!(freectx, evener_ossl_sys::FreeCtx)),
                (evener_ossl_sys::number::CIPHER_DUPCTX, $crate::inner_provider::dispatch_table::erased!(dupctx, evener_ossl_sys::DupCtx)),
                (evener_ossl_sys::number::CIPHER_GET_CTX_PARAMS, $crate::inner_provider::dispatch_table::erased!(get_ctx_params, evener_ossl_sys::GetParams)),
                (evener_ossl_sys::number::CIPHER_SET_CTX_PARAMS, $crate::inner_provider::dispatch_table::erased!(set_ctx_params, evener_ossl_sys::SetCtxParams)),
            ]);
            functions
        }
    };
}
pub(super) use cipher_functions;
