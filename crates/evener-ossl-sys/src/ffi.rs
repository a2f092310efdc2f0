//! The functions' types, under the names that `core_dispatch.h` derives from each number.

use core::ffi::{c_char, c_int, c_uchar, c_void};

use crate::{Algorithm, CoreHandle, Dispatch, Param};

macro_rules! functions {
    ($($(#[$doc:meta])* $name:ident = fn($($argument:ty),*) $(-> $result:ty)?;)*) => {
        $($(#[$doc])* pub type $name = unsafe extern "C" fn($($argument),*) $(-> $result)?;)*
    };
}

functions! {
    /// Any function, until its number says which.
    Function = fn();
    /// The one symbol of a provider, `OSSL_provider_init`.
    ProviderInit = fn(*const CoreHandle, *const Dispatch, *mut *const Dispatch, *mut *mut c_void) -> c_int;

    // -- given by the core
    /// `core_get_params`: keys of the provider's section of the configuration.
    CoreGetParams = fn(*const CoreHandle, *mut Param) -> c_int;
    /// `core_new_error`.
    CoreNewError = fn(*const CoreHandle);
    /// `core_set_error_debug`: file, line, function.
    CoreSetErrorDebug = fn(*const CoreHandle, *const c_char, c_int, *const c_char);
    /// `core_vset_error`: reason, format, the arguments. The last is a `va_list`, which x86-64 and 64-bit ARM pass by address.
    CoreVsetError = fn(*const CoreHandle, u32, *const c_char, *mut c_void);
    /// `core_set_error_mark` and its siblings.
    CoreErrorMark = fn(*const CoreHandle) -> c_int;
    /// `create_cb` and `remove_cb` of `provider_register_child_cb`.
    ChildChanged = fn(*const CoreHandle, *mut c_void) -> c_int;
    /// `global_props_cb` of `provider_register_child_cb`.
    PropertiesChanged = fn(*const c_char, *mut c_void) -> c_int;
    /// `provider_register_child_cb`.
    ProviderRegisterChildCb =
        fn(*const CoreHandle, ChildChanged, ChildChanged, PropertiesChanged, *mut c_void) -> c_int;
    /// `provider_deregister_child_cb`.
    ProviderDeregisterChildCb = fn(*const CoreHandle);
    /// `provider_name`.
    ProviderName = fn(*const CoreHandle) -> *const c_char;
    /// `provider_get0_provider_ctx`.
    ProviderGet0ProviderCtx = fn(*const CoreHandle) -> *mut c_void;
    /// `provider_get0_dispatch`.
    ProviderGet0Dispatch = fn(*const CoreHandle) -> *const Dispatch;
    /// `provider_up_ref` and `provider_free`: provider, whether to change its activation too.
    ProviderCount = fn(*const CoreHandle, c_int) -> c_int;

    // -- given by a provider
    /// `provider_teardown`.
    ProviderTeardown = fn(*mut c_void);
    /// `provider_gettable_params`, and every list that depends on the provider alone.
    GettableParams = fn(*mut c_void) -> *const Param;
    /// `provider_get_params`, and everything that answers parameters of one object.
    GetParams = fn(*mut c_void, *mut Param) -> c_int;
    /// `provider_query_operation`.
    ProviderQueryOperation = fn(*mut c_void, c_int, *mut c_int) -> *const Algorithm;

    // -- of operations
    /// `newctx` of ciphers and digests.
    NewCtx = fn(*mut c_void) -> *mut c_void;
    /// `freectx`.
    FreeCtx = fn(*mut c_void);
    /// `dupctx`.
    DupCtx = fn(*mut c_void) -> *mut c_void;
    /// `gettable_ctx_params` and `settable_ctx_params`: context or null, provider.
    CtxParamsList = fn(*mut c_void, *mut c_void) -> *const Param;
    /// `set_ctx_params`.
    SetCtxParams = fn(*mut c_void, *const Param) -> c_int;
    /// `cipher_encrypt_init` and `cipher_decrypt_init`: context, key, its length, IV, its length, parameters.
    CipherInit = fn(*mut c_void, *const c_uchar, usize, *const c_uchar, usize, *const Param) -> c_int;
    /// `cipher_encrypt_skey_init` and its sibling: context, key object, IV, its length, parameters.
    CipherSkeyInit = fn(*mut c_void, *mut c_void, *const c_uchar, usize, *const Param) -> c_int;
    /// `cipher_update` and `cipher_cipher`: context, out, written, space, in, length.
    CipherUpdate = fn(*mut c_void, *mut c_uchar, *mut usize, usize, *const c_uchar, usize) -> c_int;
    /// `cipher_final`: context, out, written, space.
    CipherFinal = fn(*mut c_void, *mut c_uchar, *mut usize, usize) -> c_int;
    /// `cipher_pipeline_encrypt_init` and its sibling: context, key, its length, pipes, an IV each, their length,
    /// parameters.
    CipherPipelineInit = fn(
        *mut c_void, *const c_uchar, usize, usize, *const *const c_uchar, usize, *const Param
    ) -> c_int;
    /// `cipher_pipeline_update`: context, pipes, and for each: out, written, space, in, length.
    CipherPipelineUpdate = fn(
        *mut c_void, usize, *const *mut c_uchar, *mut usize, *const usize, *const *const c_uchar, *const usize
    ) -> c_int;
    /// `cipher_pipeline_final`: context, pipes, and for each: out, written, space.
    CipherPipelineFinal = fn(*mut c_void, usize, *const *mut c_uchar, *mut usize, *const usize) -> c_int;
    /// `digest_init`: context, parameters.
    DigestInit = fn(*mut c_void, *const Param) -> c_int;
    /// `digest_update`: context, in, length.
    DigestUpdate = fn(*mut c_void, *const c_uchar, usize) -> c_int;
    /// `digest_final` and `digest_squeeze`: context, out, written, space.
    DigestFinal = fn(*mut c_void, *mut c_uchar, *mut usize, usize) -> c_int;
    /// `digest_copyctx`: to, from.
    DigestCopyCtx = fn(*mut c_void, *mut c_void);
    /// `digest_digest`: provider, in, length, out, written, space.
    DigestDigest = fn(*mut c_void, *const c_uchar, usize, *mut c_uchar, *mut usize, usize) -> c_int;
    /// `rand_newctx`: provider, parent, the parent's functions.
    RandNewCtx = fn(*mut c_void, *mut c_void, *const Dispatch) -> *mut c_void;
    /// `skeymgmt_import`: provider, selection, parameters.
    SkeymgmtImport = fn(*mut c_void, c_int, *const Param) -> *mut c_void;
    /// `skeymgmt_generate`: provider, parameters.
    SkeymgmtGenerate = fn(*mut c_void, *const Param) -> *mut c_void;
}
