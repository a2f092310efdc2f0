//! Pipelines of a libcrypto: through its own calls where it has them (3.5), through the provider's table where not.

use std::ffi::{CString, c_char, c_int, c_uint, c_void};
use std::path::Path;
use std::ptr;

use evener_ossl_sys::{
    Algorithm, CipherPipelineFinal, CipherPipelineInit, CipherPipelineUpdate, DupCtx, FreeCtx, Function,
    NewCtx, PARAM_UNMODIFIED, PARAM_UNSIGNED_INTEGER, Param, ProviderInit, SetCtxParams, number,
};

use super::{DEFAULT, Provider};

type Opaque = *mut c_void;

/// A libcrypto with `evener` in its default library context.
pub struct Library {
    handle: Opaque,
    provider: Opaque,
}

/// A cipher that can have pipelines.
pub enum Kind {
    /// What EVP fetched.
    Fetched { library: Opaque, cipher: Opaque },
    /// The provider's context and the functions in its table.
    Table(Opaque, Vec<(c_int, Function)>),
}

/// A context with pipelines.
pub struct PipelineContext<'k> {
    kind: &'k Kind,
    ctx: Opaque,
    count: usize,
}

macro_rules! call {
    ($library:expr, $name:tt($($argument:expr),*): fn($($type:ty),*) $(-> $result:ty)?) => {{
        let name = CString::new($name).unwrap();
        // SAFETY: an open library and a name.
        let address = unsafe { libc::dlsym($library, name.as_ptr()) };
        assert!(!address.is_null(), "{} is missing", $name);
        // SAFETY: libcrypto's function of this name.
        let function = unsafe { std::mem::transmute::<Opaque, unsafe extern "C" fn($($type),*) $(-> $result)?>(address) };
        // SAFETY: as its manual says.
        unsafe { function($($argument),*) }
    }};
}

impl Library {
    /// Loads the library at `path` and offers `init` in it as `evener`.
    pub fn open(path: &Path, init: ProviderInit) -> Self {
        let path = CString::new(path.to_str().unwrap()).unwrap();
        // SAFETY: a name.
        let handle = unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
        assert!(!handle.is_null(), "{path:?} cannot be loaded");
        let added = call!(handle, "OSSL_PROVIDER_add_builtin"(ptr::null_mut(), c"evener".as_ptr(), init):
            fn(Opaque, *const c_char, ProviderInit) -> c_int);
        assert_eq!(added, 1);
        let load = |name: *const c_char| call!(handle, "OSSL_PROVIDER_load"(ptr::null_mut(), name): fn(Opaque, *const c_char) -> Opaque);
        assert!(!load(c"default".as_ptr()).is_null());
        let provider = load(c"evener".as_ptr());
        assert!(!provider.is_null());
        Self { handle, provider }
    }

    /// The system's libcrypto, under whose name alone the loader finds it, with its default provider, which judges.
    pub fn system(init: ProviderInit) -> (Self, Provider) {
        let library = Self::open(Path::new("libcrypto.so.3"), init);
        let judge = DEFAULT.load("default").unwrap();
        // Ours has hushed this program's panics.
        drop(std::panic::take_hook());
        (library, judge)
    }

    /// Whether EVP has pipelines.
    pub fn has_pipelines(&self) -> bool {
        // SAFETY: an open library and a name.
        !unsafe { libc::dlsym(self.handle, c"EVP_CIPHER_can_pipeline".as_ptr()) }.is_null()
    }

    /// What the provider counts under `key`.
    pub fn count(&self, key: &std::ffi::CStr) -> u32 {
        let mut value = 0_u32;
        let mut params = [number_param(key, &mut value), Param::END];
        let code = call!(self.handle, "OSSL_PROVIDER_get_params"(self.provider, params.as_mut_ptr()):
            fn(Opaque, *mut Param) -> c_int);
        assert_eq!(code, 1);
        value
    }

    /// Evener's cipher, where it offers pipelines.
    pub fn kind(&self, name: &str) -> Option<Kind> {
        if self.has_pipelines() { self.fetched(name) } else { self.table(name) }
    }

    fn fetched(&self, name: &str) -> Option<Kind> {
        let library = self.handle;
        let name = CString::new(name).unwrap();
        let cipher = call!(library,
            "EVP_CIPHER_fetch"(ptr::null_mut(), name.as_ptr(), c"provider=evener".as_ptr()):
            fn(Opaque, *const c_char, *const c_char) -> Opaque);
        assert!(!cipher.is_null());
        let can = |encrypts| call!(library, "EVP_CIPHER_can_pipeline"(cipher, encrypts): fn(Opaque, c_int) -> c_int);
        (can(1) == 1 && can(0) == 1).then_some(Kind::Fetched { library, cipher })
    }

    fn table(&self, name: &str) -> Option<Kind> {
        let mut no_store = 0;
        let mut at = call!(self.handle,
            "OSSL_PROVIDER_query_operation"(self.provider, number::OP_CIPHER, &raw mut no_store):
            fn(Opaque, c_int, *mut c_int) -> *const Algorithm);
        let context =
            call!(self.handle, "OSSL_PROVIDER_get0_provider_ctx"(self.provider): fn(Opaque) -> Opaque);
        loop {
            // SAFETY: the list ends with null names.
            let algorithm = unsafe { &*at };
            if algorithm.names.is_null() {
                return None;
            }
            // SAFETY: text that ends.
            let names = unsafe { std::ffi::CStr::from_ptr(algorithm.names) }.to_str().unwrap();
            if names.split(':').any(|other| other == name) {
                let functions = functions(algorithm);
                let has = |number| functions.iter().any(|(known, _)| *known == number);
                return (15..=18).all(has).then_some(Kind::Table(context, functions));
            }
            // SAFETY: not the end.
            at = unsafe { at.add(1) };
        }
    }
}

fn functions(algorithm: &Algorithm) -> Vec<(c_int, Function)> {
    let mut at = algorithm.implementation;
    let mut all = Vec::new();
    loop {
        // SAFETY: a table ends with number 0.
        let entry = unsafe { &*at };
        let Some(function) = entry.function.filter(|_| entry.function_id != 0) else { return all };
        all.push((entry.function_id, function));
        // SAFETY: not the end.
        at = unsafe { at.add(1) };
    }
}

fn number_param(key: &std::ffi::CStr, value: &mut u32) -> Param {
    Param {
        key: key.as_ptr(),
        data_type: PARAM_UNSIGNED_INTEGER,
        data: (&raw mut *value).cast(),
        data_size: size_of::<u32>(),
        return_size: PARAM_UNMODIFIED,
    }
}

impl Kind {
    fn function(&self, number: c_int) -> Function {
        let functions: &[_] = match self {
            Self::Table(_, functions) => functions,
            Self::Fetched { .. } => &[],
        };
        functions.iter().find(|(known, _)| *known == number).unwrap().1
    }
}

macro_rules! entry {
    ($kind:expr, $number:ident: $type:ty) => {
        // SAFETY: the number says that the function has this type.
        unsafe { std::mem::transmute::<Function, $type>($kind.function(number::$number)) }
    };
}

impl<'k> PipelineContext<'k> {
    pub fn new(kind: &'k Kind) -> Self {
        let ctx = match kind {
            Kind::Fetched { library, .. } => call!(*library, "EVP_CIPHER_CTX_new"(): fn() -> Opaque),
            Kind::Table(provider, _) => {
                let new = entry!(kind, CIPHER_NEWCTX: NewCtx);
                // SAFETY: the provider's context.
                unsafe { new(*provider) }
            }
        };
        Self { kind, ctx, count: 0 }
    }

    /// Init of as many messages as there are IVs; only the first of them says whether the cipher is given.
    pub fn init(
        &mut self,
        is_first: bool,
        encrypts: bool,
        key: Option<&[u8]>,
        ivs: &[Option<&[u8]>],
    ) -> bool {
        self.count = ivs.len();
        let (key, key_len) = key.map_or((ptr::null(), 0), |key| (key.as_ptr(), key.len()));
        let ivs: Vec<*const u8> = ivs.iter().map(|iv| iv.map_or(ptr::null(), <[u8]>::as_ptr)).collect();
        let answer = match self.kind {
            Kind::Fetched { library, cipher } => {
                let cipher = if is_first { *cipher } else { ptr::null_mut() };
                let name =
                    if encrypts { "EVP_CipherPipelineEncryptInit" } else { "EVP_CipherPipelineDecryptInit" };
                call!(*library, name(self.ctx, cipher, key, key_len, ivs.len(), ivs.as_ptr(), 16):
                    fn(Opaque, Opaque, *const u8, usize, usize, *const *const u8, usize) -> c_int)
            }
            kind @ Kind::Table(..) => {
                let init = match encrypts {
                    true => entry!(kind, CIPHER_PIPELINE_ENCRYPT_INIT: CipherPipelineInit),
                    false => entry!(kind, CIPHER_PIPELINE_DECRYPT_INIT: CipherPipelineInit),
                };
                // SAFETY: arrays of the lengths that are passed.
                unsafe { init(self.ctx, key, key_len, ivs.len(), ivs.as_ptr(), 16, ptr::null()) }
            }
        };
        answer == 1
    }

    /// A piece of each message, from `spaces[n][from..from + len]` to the start of `outs[n]`, or to that of `spaces[n]`
    /// itself where there are no `outs`; what each wrote.
    pub fn update(
        &self,
        spaces: &mut [Vec<u8>],
        outs: Option<&mut [Vec<u8>]>,
        lens: &[usize],
    ) -> Option<Vec<usize>> {
        let ins: Vec<*const u8> = spaces.iter().map(|space| space.as_ptr()).collect();
        let outs = outs.unwrap_or(spaces);
        let sizes: Vec<usize> = outs.iter().map(Vec::len).collect();
        let outs: Vec<*mut u8> = outs.iter_mut().map(|out| out.as_mut_ptr()).collect();
        self.update_at(&ins, &outs, &sizes, lens)
    }

    /// The same memory, in place, as the piece of two messages.
    pub fn update_shared(&self, space: &mut [u8]) -> bool {
        let (out, input) = ([space.as_mut_ptr(); 2], [space.as_ptr(); 2]);
        // The provider has to do the one before the other.
        self.update_at(&input, &out, &[space.len(); 2], &[space.len(); 2]).is_some()
    }

    fn update_at(
        &self,
        ins: &[*const u8],
        outs: &[*mut u8],
        sizes: &[usize],
        lens: &[usize],
    ) -> Option<Vec<usize>> {
        let mut written = vec![0; outs.len()];
        let (out, sizes, input, lens) = (outs.as_ptr(), sizes.as_ptr(), ins.as_ptr(), lens.as_ptr());
        let answer = match self.kind {
            Kind::Fetched { library, .. } => call!(*library,
                "EVP_CipherPipelineUpdate"(self.ctx, out, written.as_mut_ptr(), sizes, input, lens):
                fn(Opaque, *const *mut u8, *mut usize, *const usize, *const *const u8, *const usize) -> c_int),
            kind @ Kind::Table(..) => {
                let update = entry!(kind, CIPHER_PIPELINE_UPDATE: CipherPipelineUpdate);
                // SAFETY: as many of each as there are messages.
                unsafe { update(self.ctx, self.count, out, written.as_mut_ptr(), sizes, input, lens) }
            }
        };
        (answer == 1).then_some(written)
    }

    /// The end of each message.
    pub fn last(&self) -> Option<Vec<Vec<u8>>> {
        let mut spaces = vec![vec![0_u8; 32]; self.count];
        let sizes = vec![32; self.count];
        let outs: Vec<*mut u8> = spaces.iter_mut().map(|space| space.as_mut_ptr()).collect();
        let mut written = vec![0; self.count];
        let (out, sizes) = (outs.as_ptr(), sizes.as_ptr());
        let answer = match self.kind {
            Kind::Fetched { library, .. } => call!(*library,
                "EVP_CipherPipelineFinal"(self.ctx, out, written.as_mut_ptr(), sizes):
                fn(Opaque, *const *mut u8, *mut usize, *const usize) -> c_int),
            kind @ Kind::Table(..) => {
                let last = entry!(kind, CIPHER_PIPELINE_FINAL: CipherPipelineFinal);
                // SAFETY: as above.
                unsafe { last(self.ctx, self.count, out, written.as_mut_ptr(), sizes) }
            }
        };
        spaces.iter_mut().zip(&written).for_each(|(space, &len)| space.truncate(len));
        (answer == 1).then_some(spaces)
    }

    pub fn set_padding(&self, on: bool) {
        match self.kind {
            Kind::Fetched { library, .. } => {
                call!(*library, "EVP_CIPHER_CTX_set_padding"(self.ctx, on.into()): fn(Opaque, c_int) -> c_int);
            }
            kind @ Kind::Table(..) => {
                let mut value: c_uint = on.into();
                let params = [number_param(c"padding", &mut value), Param::END];
                let set = entry!(kind, CIPHER_SET_CTX_PARAMS: SetCtxParams);
                // SAFETY: a list that ends.
                unsafe { set(self.ctx, params.as_ptr()) };
            }
        }
    }

    pub fn duplicate(&self) -> Self {
        let ctx = match self.kind {
            Kind::Fetched { library, .. } => {
                let copy = call!(*library, "EVP_CIPHER_CTX_new"(): fn() -> Opaque);
                let copied =
                    call!(*library, "EVP_CIPHER_CTX_copy"(copy, self.ctx): fn(Opaque, Opaque) -> c_int);
                assert_eq!(copied, 1);
                copy
            }
            kind @ Kind::Table(..) => {
                let dup = entry!(kind, CIPHER_DUPCTX: DupCtx);
                // SAFETY: ours.
                unsafe { dup(self.ctx) }
            }
        };
        Self { kind: self.kind, ctx, count: self.count }
    }
}

impl Drop for PipelineContext<'_> {
    fn drop(&mut self) {
        match self.kind {
            Kind::Fetched { library, .. } => call!(*library, "EVP_CIPHER_CTX_free"(self.ctx): fn(Opaque)),
            kind @ Kind::Table(..) => {
                let free = entry!(kind, CIPHER_FREECTX: FreeCtx);
                // SAFETY: ours.
                unsafe { free(self.ctx) }
            }
        }
    }
}
