//! The shared object: opened by name at run time. The system's stays mapped until the process ends, so that every
//! later opening costs nothing; the first costs about 1.5 ms of relocations. One that is named by a path is closed
//! when the last of its code has run.

use std::ffi::{CStr, OsStr, c_char, c_void};
use std::mem::{MaybeUninit, size_of, transmute_copy};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::ptr::NonNull;
use std::sync::OnceLock;

use crate::ffi::layout::{RELEASES, Release, Symbols};
use crate::unavailable::Unavailable;

/// File names under which distributions install the library, newest first.
const NAMES: [&CStr; 2] = [c"libIPSec_MB.so.2", c"libIPSec_MB.so.1"];

/// An open library whose release is known.
pub(crate) struct Library {
    symbols: Symbols,
    release: &'static Release,
    version: String,
    /// Keeps the code behind `symbols` mapped.
    _handle: Handle,
}

impl Library {
    /// Opens `name`: a file name that the system's loader searches for, or a path.
    pub(crate) fn open(name: &CStr) -> Result<Self, Unavailable> {
        let handle = Handle::open(name)?;
        let symbols = handle.symbols().ok_or(Unavailable::Incomplete)?;
        // SAFETY: the function takes nothing and returns a number.
        let number = unsafe { (symbols.version)() };
        // SAFETY: the function takes nothing and returns a static text.
        let version = unsafe { (symbols.version_text)() };
        // SAFETY: as above: a static text that ends with a zero, or null.
        let version = unsafe { text(version) };
        match RELEASES.iter().find(|release| release.number == number) {
            Some(release) => Ok(Self { symbols, release, version, _handle: handle }),
            None => Err(Unavailable::UnknownVersion { version }),
        }
    }

    pub(crate) const fn symbols(&self) -> &Symbols {
        &self.symbols
    }

    pub(crate) const fn release(&self) -> &'static Release {
        self.release
    }

    /// As the library writes it: `1.3.0`.
    pub(crate) fn version(&self) -> &str {
        &self.version
    }
}

/// What the loader gave; closed on drop.
struct Handle(NonNull<c_void>);

// SAFETY: the loader's functions may be called from any thread, and the handle is only handed to them.
unsafe impl Send for Handle {}

impl Handle {
    fn open(name: &CStr) -> Result<Self, Unavailable> {
        let is_the_systems = !name.to_bytes().contains(&b'/');
        let stays = if is_the_systems { libc::RTLD_NODELETE } else { 0 };
        // SAFETY: `name` ends with a zero. Initialisers run: the library's only look at the processor.
        let handle = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL | stays) };
        NonNull::new(handle).map(Self).ok_or_else(|| Unavailable::NotFound { reason: last_error() })
    }

    fn symbols(&self) -> Option<Symbols> {
        Some(Symbols {
            // SAFETY: here and below: the field has the type that the public header gives the name in every
            // known release.
            version: unsafe { self.find(c"imb_get_version") }?,
            // SAFETY: as above.
            version_text: unsafe { self.find(c"imb_get_version_str") }?,
            // SAFETY: as above.
            feature_flags: unsafe { self.find(c"imb_get_feature_flags") }?,
            // SAFETY: as above.
            manager_bytes: unsafe { self.find(c"imb_get_mb_mgr_size") }?,
            // SAFETY: as above.
            place_manager: unsafe { self.find(c"imb_set_pointers_mb_mgr") }?,
            // SAFETY: as above.
            init_auto: unsafe { self.find(c"init_mb_mgr_auto") }?,
        })
    }

    /// The function behind `name`, if there is one.
    ///
    /// # Safety
    ///
    /// `F` is the function pointer type that belongs to `name`.
    unsafe fn find<F: Copy>(&self, name: &CStr) -> Option<F> {
        const { assert!(size_of::<F>() == size_of::<*const c_void>()) };
        // SAFETY: the handle is open and `name` ends with a zero.
        let found = unsafe { libc::dlsym(self.0.as_ptr(), name.as_ptr()) };
        // SAFETY: `F` is a function pointer (the caller's promise) and `found` is not null.
        NonNull::new(found).map(|function| unsafe { transmute_copy(&function) })
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        // SAFETY: opened by `open`, closed once; the owner of the symbols goes with it.
        unsafe { libc::dlclose(self.0.as_ptr()) };
    }
}

/// [`NAMES`], first those of libraries beside the C library, where distributions put both: for one that is not there the loader asks for some 80 files.
fn names() -> [&'static CStr; 2] {
    let mut names = NAMES;
    let beside = c_library().map(|path| path.with_file_name(""));
    let is_there = |name: &CStr| {
        let name = Path::new(OsStr::from_bytes(name.to_bytes()));
        beside.as_ref().is_some_and(|folder| folder.join(name).exists())
    };
    names.sort_by_key(|name| !is_there(name));
    names
}

/// The file of the C library, as the loader names it.
fn c_library() -> Option<PathBuf> {
    let mut info = MaybeUninit::<libc::Dl_info>::uninit();
    // SAFETY: any address may be asked for, and the place is the call's to fill.
    let is_known = unsafe { libc::dladdr(libc::dlsym as *const c_void, info.as_mut_ptr()) } != 0;
    // SAFETY: filled where the answer was not 0.
    let name = is_known.then(|| unsafe { info.assume_init() }.dli_fname)?;
    // SAFETY: the loader's text, which stays with the library, or null.
    (!name.is_null()).then(|| PathBuf::from(OsStr::from_bytes(unsafe { CStr::from_ptr(name) }.to_bytes())))
}

/// The system's library that was found. Its name is the loader's for as long as the process lives, so that the loader looks for no file.
static FOUND: OnceLock<&CStr> = OnceLock::new();

/// Opens the first of the system's libraries that `check` finds nothing against.
pub(crate) fn find_first(check: impl Fn(&Library) -> Result<(), Unavailable>) -> Result<(), Unavailable> {
    if FOUND.get().is_some() {
        return Ok(());
    }
    let name = load_first_of(&names(), |name| {
        Library::open(name).and_then(|library| check(&library)).map(|()| name)
    })?;
    _ = FOUND.set(name);
    Ok(())
}

/// What `load` makes of the first library that can be used.
pub(crate) fn load_first<T>(
    load: impl Fn(&'static CStr) -> Result<T, Unavailable>,
) -> Result<T, Unavailable> {
    match FOUND.get() {
        Some(name) => load_first_of(&[name], load),
        None => load_first_of(&names(), load),
    }
}

/// As [`load_first`], of libraries with these names.
pub(crate) fn load_first_of<'n, T>(
    names: &[&'n CStr],
    load: impl Fn(&'n CStr) -> Result<T, Unavailable>,
) -> Result<T, Unavailable> {
    if !cfg!(all(target_arch = "x86_64", target_pointer_width = "64")) {
        return Err(Unavailable::OtherProcessor);
    }
    let mut why = None;
    for name in names {
        match load(name) {
            Ok(loaded) => return Ok(loaded),
            // A library that is there but cannot be used says more than one that is not there.
            Err(unavailable) if why.is_none() || matches!(why, Some(Unavailable::NotFound { .. })) => {
                why = Some(unavailable);
            }
            Err(_) => {}
        }
    }
    Err(why.unwrap_or(Unavailable::OtherProcessor))
}

/// The loader's last error on this thread.
fn last_error() -> String {
    // SAFETY: the function takes nothing and returns a text of this thread, or null.
    let reason = unsafe { libc::dlerror() };
    // SAFETY: the text stays until the next call of the loader, which comes after this copy.
    unsafe { text(reason) }
}

/// A copy of a C text; empty for null.
///
/// # Safety
///
/// `start` is null or points to bytes that end with a zero.
unsafe fn text(start: *const c_char) -> String {
    if start.is_null() {
        return String::new();
    }
    // SAFETY: the caller's promise.
    unsafe { CStr::from_ptr(start) }.to_string_lossy().into_owned()
}
