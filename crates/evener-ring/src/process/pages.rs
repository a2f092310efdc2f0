//! Pages of a region: made before they are touched, and looked for without being made. Shared memory reserves none, so the system may refuse a page that is
//! touched; then it ends the process by a signal. Asked for beforehand, it answers with an error.

use std::io;
use std::os::fd::{AsFd, AsRawFd as _};

use super::region::Region;

impl Region {
    /// Makes the pages of the `len` bytes at offset `at` that are not there. Who has the file may take them away again.
    ///
    /// # Errors
    ///
    /// Where they are not wholly inside, or the system has no memory for them: some may have been made then.
    pub fn make_pages(&self, at: usize, len: usize) -> io::Result<()> {
        let (first, bytes) = self.whole_pages(at, len)?;
        // SAFETY: the range is this mapping's, and the advice changes no byte of it.
        if bytes == 0 || unsafe { libc::madvise(first, bytes, libc::MADV_POPULATE_WRITE) } == 0 {
            return Ok(());
        }
        match io::Error::last_os_error() {
            // A kernel before 5.14.
            error if error.raw_os_error() == Some(libc::EINVAL) => self.read_each_page(at, len),
            error => Err(error),
        }
    }

    /// Has the system read a word of each page, which makes it; where the system cannot, that is an error and no signal.
    fn read_each_page(&self, at: usize, len: usize) -> io::Result<()> {
        let (first, bytes) = self.whole_pages(at, len)?;
        for at in (0..bytes).step_by(page_bytes()) {
            let word = first.wrapping_byte_add(at);
            let no_way = -1_i32;
            // SAFETY: the call reads a mask there and refuses to use it, for there is no such way; it writes nothing.
            unsafe {
                libc::syscall(libc::SYS_rt_sigprocmask, no_way, word, 0_usize, size_of::<u64>());
            }
            let error = io::Error::last_os_error();
            if error.raw_os_error() == Some(libc::EFAULT) {
                return Err(error);
            }
        }
        Ok(())
    }

    /// Whether `file`, of which the region shows the bytes from `offset` on, has all pages of the `len` bytes at offset `at`, in main memory or swapped out. It takes
    /// as long as these are many, and takes no lock of the file's.
    ///
    /// # Errors
    ///
    /// Where they are not wholly inside; the system's otherwise: kernels before 6.5 cannot tell, and none tells who may not write the file.
    pub fn has_pages(&self, file: impl AsFd, offset: u64, at: usize, len: usize) -> io::Result<bool> {
        let (first, bytes) = self.whole_pages(at, len)?;
        let from = first as usize - self.span(0, 0).map_err(outside)?.as_ptr() as usize;
        let range = CacheRange { from: offset + from as u64, bytes: bytes as u64 };
        if bytes == 0 {
            return Ok(true);
        }
        let (file, mut pages) = (file.as_fd().as_raw_fd(), CachedPages::default());
        // SAFETY: both places have the layout of the call's, which reads the one and fills the other.
        let code = unsafe { libc::syscall(CACHESTAT, file, &raw const range, &raw mut pages, 0_u32) };
        if code != 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(pages.here.saturating_add(pages.evicted) >= (bytes / page_bytes()) as u64)
    }

    /// Whether all pages of the `len` bytes at offset `at` are in main memory, as far as the system tells: where this process may not write the file it says so of each.
    ///
    /// # Errors
    ///
    /// Where they are not wholly inside; the system's otherwise.
    pub fn has_resident_pages(&self, at: usize, len: usize) -> io::Result<bool> {
        let (first, bytes) = self.whole_pages(at, len)?;
        let mut pages = [0; PAGES_AT_ONCE];
        let step = PAGES_AT_ONCE * page_bytes();
        for at in (0..bytes).step_by(step) {
            let bytes = step.min(bytes - at);
            // SAFETY: the range is this mapping's, and there is a byte for each of its pages.
            if unsafe { libc::mincore(first.wrapping_byte_add(at), bytes, pages.as_mut_ptr()) } != 0 {
                return Err(io::Error::last_os_error());
            }
            if pages[..bytes / page_bytes()].iter().any(|page| page & 1 == 0) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Where the pages of a span begin, and their bytes.
    fn whole_pages(&self, at: usize, len: usize) -> io::Result<(*mut libc::c_void, usize)> {
        let page = page_bytes();
        // A region begins on a page.
        let first = at - at % page;
        let bytes = if len == 0 { 0 } else { (at - first).saturating_add(len) };
        let here = self.span(first, bytes).map_err(outside)?;
        Ok((here.as_ptr().cast(), bytes.next_multiple_of(page)))
    }
}

/// What is asked of a file (`struct cachestat_range`).
#[repr(C)]
struct CacheRange {
    from: u64,
    bytes: u64,
}

/// What the system says of it (`struct cachestat`), in pages.
#[repr(C)]
#[derive(Default)]
struct CachedPages {
    here: u64,
    dirty: u64,
    in_writeback: u64,
    /// Of a file in main memory: swapped out.
    evicted: u64,
    recently_evicted: u64,
}

/// The number of `cachestat`, the same for each processor but MIPS, where none has this number.
const CACHESTAT: libc::c_long = 451;

/// Pages of which one call tells.
const PAGES_AT_ONCE: usize = 256;

fn outside(_: super::region::OutOfRegion) -> io::Error {
    io::ErrorKind::InvalidInput.into()
}

fn page_bytes() -> usize {
    // SAFETY: the call reads a number.
    let bytes = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    usize::try_from(bytes).unwrap_or(4096)
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::os::fd::FromRawFd as _;

    use super::*;

    const PAGE: usize = 4096;

    /// A region of four pages, of whose file only two are left: to touch the others would end the process, as where there is no memory for them.
    fn cut() -> Region {
        // SAFETY: the name is a C string.
        let file = unsafe { libc::memfd_create(c"cut".as_ptr(), libc::MFD_CLOEXEC) };
        // SAFETY: the call above made this descriptor.
        let file = unsafe { File::from_raw_fd(file) };
        file.set_len(4 * PAGE as u64).unwrap();
        let region = Region::map(&file, 0, 4 * PAGE).unwrap();
        file.set_len(2 * PAGE as u64).unwrap();
        region
    }

    #[test]
    fn a_page_that_the_system_cannot_make_is_an_error_and_no_signal() {
        for make in [Region::make_pages, Region::read_each_page] {
            let region = cut();
            make(&region, PAGE - 1, PAGE + 1).unwrap();
            assert!(make(&region, PAGE, PAGE + 1).is_err());
            assert!(make(&region, 3 * PAGE, PAGE + 1).is_err(), "outside");
            make(&region, 3 * PAGE, 0).unwrap();
        }
    }

    #[test]
    fn pages_are_there_once_they_were_made_and_no_sooner() {
        for make in [Region::make_pages, Region::read_each_page] {
            let (region, file) = Region::create(c"pages", 1000 * PAGE).unwrap();
            let has = |at, len| {
                let resident = region.has_resident_pages(at, len).unwrap();
                // A kernel before 6.5 does not tell.
                let known = region.has_pages(&file, 0, at, len).unwrap_or(resident);
                assert_eq!(known, resident, "{at}, {len}");
                known
            };
            assert!(!has(0, 1) && has(0, 0));
            make(&region, 300 * PAGE + 1, 400 * PAGE).unwrap();
            assert!(has(300 * PAGE, 401 * PAGE));
            assert!(!has(300 * PAGE, 401 * PAGE + 1) && !has(300 * PAGE - 1, 2));
            region.make_pages(0, 1000 * PAGE).unwrap();
            assert!(has(0, 1000 * PAGE));
        }
    }

    #[test]
    fn pages_of_a_region_within_a_file_are_those_that_it_shows() {
        let (whole, file) = Region::create(c"pages", 8 * PAGE).unwrap();
        whole.make_pages(6 * PAGE, PAGE).unwrap();
        let region = Region::of_peer(&file, 4 * PAGE as u64, 4 * PAGE as u64).unwrap();
        for page in 0..4 {
            let has = region.has_resident_pages(page * PAGE, PAGE).unwrap();
            assert_eq!(has, page == 2);
            assert_eq!(region.has_pages(&file, 4 * PAGE as u64, page * PAGE, PAGE).unwrap_or(has), has);
        }
    }
}
