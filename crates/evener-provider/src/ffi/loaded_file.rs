//! Which file of this process an address lies in, and that file as a library: how a provider finds the libcrypto that loaded it.
//!
//! Path: address of a core function -> the file among all that are loaded -> its handle, unless another libcrypto hides behind it.

use std::ffi::{c_char, c_int, c_void};
use std::{ptr, slice};

use evener_ossl_sys::Function;

use super::dispatch;

// The library's handle stays open: our caller runs in it, so that it cannot go anyway.
pub(super) fn library_of(landmark: Function) -> Option<*mut c_void> {
    let file = file_of((landmark as *const c_void).addr())?;
    let candidates = [open(file.name), open(ptr::null())];
    candidates.into_iter().flatten().find(|&library| is_of(library, &file))
}

/// Whether the library's functions are those of the file that loaded us. A program that hides the symbols of its own
/// libcrypto may show those of another one, which knows nothing of the first one's contexts.
fn is_of(library: *mut c_void, file: &LoadedFile) -> bool {
    // SAFETY: the library is open, and the name ends in nul.
    let load = unsafe { libc::dlsym(library, c"OSSL_PROVIDER_load".as_ptr()) };
    !load.is_null() && file_of(load.addr()).is_some_and(|found| found.number == file.number)
}

/// A loaded file.
struct LoadedFile {
    /// The loader's name of it; empty for the program itself.
    name: *const c_char,
    /// Its place among all that are loaded.
    number: usize,
}

/// What is looked for, and how far the search has come.
struct Search {
    address: usize,
    passed: usize,
    found: Option<LoadedFile>,
}

/// The file that an address lies in. Not `dladdr`, which compares the address with every symbol of that file: 190,000
/// instructions in libcrypto (measured).
fn file_of(address: usize) -> Option<LoadedFile> {
    let mut search = Search { address, passed: 0, found: None };
    // SAFETY: the function is called until it answers 1, with `search`, which lives through the call.
    unsafe { libc::dl_iterate_phdr(Some(visit), (&raw mut search).cast()) };
    search.found
}

dispatch! {
    /// Whether the address lies in the next loaded file: 1, and it is found.
    fn visit(info: *mut libc::dl_phdr_info, _bytes: usize, search: *mut c_void) -> c_int {
        // SAFETY: the loader's record of a file, which it keeps during the call.
        let info = unsafe { &*info };
        // SAFETY: `file_of` lends it through all calls, and no other thread has it meanwhile.
        let search = unsafe { &mut *search.cast::<Search>() };
        // SAFETY: the loader's headers of that file, so many.
        let headers = unsafe { slice::from_raw_parts(info.dlpi_phdr, info.dlpi_phnum.into()) };
        let holds = |header: &Header| {
            let start = widened(info.dlpi_addr).wrapping_add(widened(header.p_vaddr));
            let offset = (search.address as u64).wrapping_sub(start);
            header.p_type == libc::PT_LOAD && offset < widened(header.p_memsz)
        };
        if headers.iter().any(holds) {
            search.found = Some(LoadedFile { name: info.dlpi_name, number: search.passed });
        }
        search.passed += 1;
        search.found.is_some().into()
    }
}

#[cfg(target_pointer_width = "64")]
type Header = libc::Elf64_Phdr;
#[cfg(target_pointer_width = "32")]
type Header = libc::Elf32_Phdr;

/// Addresses in those records have the machine's width.
fn widened(address: impl Into<u64>) -> u64 {
    address.into()
}

/// A library that is loaded already; null: the program itself and all that it shows to everyone.
fn open(file: *const c_char) -> Option<*mut c_void> {
    // SAFETY: null, or a name that ends in nul; NOLOAD: no code runs by this.
    let library = unsafe { libc::dlopen(file, libc::RTLD_LAZY | libc::RTLD_NOLOAD) };
    (!library.is_null()).then_some(library)
}
