//! Pages that the host makes in memory of clients, which the system books as the host's: a client's memory may be a file without pages, of which each that is touched
//! is made then, by the process that touches it. 64 clients with a gigabyte each would have the host killed in a container of 300 MiB.
//!
//! `touch (a span is about to be read or written) -> all its pages were touched before, or the new ones are taken from the user's share -> none left: only what has
//! pages is touched, and at once -> the client goes -> Departed: given back when the system has let go of the file`.
//!
//! What is counted is each page that was ever touched, as if the host had made it; so of the share the count is never too low, whatever the client does with its file
//! meanwhile, and a page that was counted costs one look at a bit. To ask for each request instead whether its pages are there would be a system call for each. Beyond the
//! share nothing is counted: pages that are seen are touched before a client that takes them away can gain much, and none is lent for later. It is asked about the span alone,
//! and by a call that takes no lock of the file's: who shares it may hold that for as long as it likes, and where its next hole is takes the longer the more memory there is.
//!
//! Pages that are counted are made before they are touched: to touch one for which the system has no memory would end the host by a signal.

use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::mem::MaybeUninit;
use std::ops::Deref;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};

use evener_ring::Region;
use rustix::fs::inotify::{self, CreateFlags, ReadFlags, WatchFlags};
use rustix::fs::{Access, access};

use crate::limits::SpareFile;
use crate::state::users::User;

/// What may be done with a span.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Touch {
    /// All its pages are counted: it may be touched at any time.
    Counted,
    /// Its pages are there, and not counted: it may be touched at once.
    There,
    /// It is not to be touched, for a page of it would be one too many.
    Refused,
}

/// What is counted of one client's memory.
#[derive(Debug)]
pub(crate) struct Faults {
    user: Arc<User>,
    pages_max: u64,
    /// Pages that were taken from the user's share.
    used: AtomicU64,
    /// Something was not to be touched.
    is_refused: AtomicBool,
    /// The system had no memory for a page.
    is_out_of_memory: AtomicBool,
}

/// Why a client goes whose memory has no pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum NoPages {
    #[error(
        "memory without pages: the host has made {made} bytes of them for user {uid}, and makes no more than {most} (--user-faults; a VMM makes them by prealloc=on)"
    )]
    Share { uid: u32, made: u64, most: u64 },
    #[error("memory without pages, and the system has no memory for them (a VMM makes them by prealloc=on)")]
    System,
}

/// A file of a client's memory, opened by the host.
#[derive(Debug)]
struct OwnFile {
    file: File,
    _spare: Option<SpareFile>,
}

impl Deref for OwnFile {
    type Target = File;

    fn deref(&self) -> &File {
        &self.file
    }
}

/// A region of a client's memory, the file behind it, and which of its pages were touched.
#[derive(Debug)]
pub(crate) struct Backing {
    region: Arc<Region>,
    /// Opened anew, so that what the host does with it is no matter of the client's. None where the client forbids that; then nothing is known of its pages.
    file: Option<Arc<OwnFile>>,
    /// A bit for each page of the region, in parts that are made when they are needed.
    touched: Vec<OnceLock<Box<[AtomicU64; WORDS]>>>,
    /// Where the region begins in the file.
    first_byte: u64,
}

impl Backing {
    /// What stands behind a region. A client's memory costs the host one descriptor for each file: regions of a file that is one of `known` share that one's.
    pub(crate) fn of(file: &File, known: &[&Self], region: Arc<Region>, first_byte: u64) -> Self {
        let mut of_known = known.iter().filter_map(|known| known.file.as_ref());
        let same = of_known.find(|known| is_same(known, file)).cloned();
        // A client may have a lease on it, which would have an opening wait.
        let flags = libc::O_CLOEXEC | libc::O_NONBLOCK;
        let open = || OpenOptions::new().read(true).custom_flags(flags).open(path_of(file)).ok();
        // One is in what the client may cost; of others there are as many as are to spare.
        let is_first = known.iter().all(|known| known.file.is_none());
        let spare = || if is_first { Some(None) } else { SpareFile::take().map(Some) };
        let file = same
            .or_else(|| spare().and_then(|spare| Some(Arc::new(OwnFile { file: open()?, _spare: spare }))));
        let parts = (region.byte_count() as u64).div_ceil(PAGE * PART_PAGES);
        let touched = (0..parts).map(|_| OnceLock::new()).collect();
        Self { region, file, touched, first_byte }
    }

    pub(crate) const fn region(&self) -> &Arc<Region> {
        &self.region
    }

    /// The words of bits that stand for pages from `first` to `last`, and which bits of each.
    fn words(&self, first: u64, last: u64) -> impl Iterator<Item = (&AtomicU64, u64)> {
        let words = first / 64..=last / 64;
        words.filter_map(move |word| {
            let from = first.saturating_sub(word * 64).min(63);
            let to = (last - word * 64).min(63);
            let part = self.touched.get(usize::try_from(word / WORDS as u64).ok()?)?;
            let part = part.get_or_init(|| Box::new([const { AtomicU64::new(0) }; WORDS]));
            let index = usize::try_from(word % WORDS as u64).ok()?;
            Some((&part[index], (u64::MAX << from) & (u64::MAX >> (63 - to))))
        })
    }

    /// Whether it is of the same file as another.
    fn is_of_file_of(&self, other: &Self) -> bool {
        match (&self.file, &other.file) {
            (Some(file), Some(other)) => Arc::ptr_eq(file, other) || is_same(file, other),
            _ => false,
        }
    }

    /// Pages that were touched, by their numbers in the file.
    fn touched_pages(&self) -> impl Iterator<Item = u64> {
        let parts = self.touched.iter().zip((0_u64..).step_by(WORDS * 64));
        let parts = parts.filter_map(|(part, first)| Some((part.get()?, first)));
        let words = parts.flat_map(|(part, first)| part.iter().zip((first..).step_by(64)));
        let at = self.first_byte / PAGE;
        words.flat_map(move |(word, first)| {
            let bits = word.load(Relaxed);
            (0..64).filter(move |bit| bits >> bit & 1 == 1).map(move |bit| at + first + bit)
        })
    }

    /// Notes a page of the file as touched, where it has it.
    fn note(&self, page: u64) -> bool {
        let Some(page) = page.checked_sub(self.first_byte / PAGE) else { return false };
        let noted = self.words(page, page).next();
        noted.is_some_and(|(word, bits)| {
            word.fetch_or(bits, Relaxed);
            true
        })
    }

    /// Pages that the file has, in all; too many where that cannot be told.
    fn pages(&self) -> u64 {
        let about = self.file.as_ref().and_then(|file| file.metadata().ok());
        about.map_or(u64::MAX, |about| about.blocks().div_ceil(PAGE / 512))
    }

    /// Whether all pages of a span are there.
    fn has(&self, at: usize, len: usize) -> bool {
        let Some(file) = &self.file else { return false };
        self.region.has_pages(&file.file, self.first_byte, at, len).unwrap_or_else(|_| {
            // What the system says of residents counts where this process may write the file, which the client could forbid just now. Of what is swapped out it says nothing.
            let may_tell = || access(path_of(file), Access::WRITE_OK).is_ok();
            self.region.has_resident_pages(at, len).unwrap_or(false) && may_tell()
        })
    }
}

impl Faults {
    pub(crate) const fn new(user: Arc<User>, pages_max: u64) -> Self {
        let (is_refused, is_out_of_memory) = (AtomicBool::new(false), AtomicBool::new(false));
        Self { user, pages_max, used: AtomicU64::new(0), is_refused, is_out_of_memory }
    }

    pub(crate) const fn user(&self) -> &Arc<User> {
        &self.user
    }

    /// Counts the pages of a span that is about to be touched, from byte `at` of a region on, and makes those that are new.
    pub(crate) fn touch(&self, backing: &Backing, at: usize, len: usize) -> Touch {
        if len == 0 || cfg!(mutant = "host_faults_unlimited") {
            return Touch::Counted;
        }
        let (first, last) = (at as u64 / PAGE, (at as u64 + len as u64 - 1) / PAGE);
        // Relaxed, here and below: bits and sums of what each thread adds, which nothing else is read through. What two threads touch first at once is counted twice.
        let is_new = |(word, bits): (&AtomicU64, u64)| u64::from((bits & !word.load(Relaxed)).count_ones());
        let new_pages: u64 = backing.words(first, last).map(is_new).sum();
        if new_pages == 0 {
            return Touch::Counted;
        }
        if self.user.held.pages.take(new_pages, self.pages_max, 0) {
            if backing.region.make_pages(at, len).is_err() {
                self.user.held.pages.give_back(new_pages);
                self.is_out_of_memory.store(true, Relaxed);
                return Touch::Refused;
            }
            self.used.fetch_add(new_pages, Relaxed);
            backing.words(first, last).for_each(|(word, bits)| {
                word.fetch_or(bits, Relaxed);
            });
            return Touch::Counted;
        }
        // Nothing is left: what has pages costs none. It is asked each time, for they may be taken away.
        if backing.has(at, len) {
            return Touch::There;
        }
        if !self.is_refused.swap(true, Relaxed) {
            self.user.refused.add(1);
        }
        Touch::Refused
    }

    /// Takes over what was counted in the regions that these take the place of, as far as they are of the same files: a table of memory may be sent
    /// again and again, and its pages are the same.
    pub(crate) fn take_over(&self, all: &[&Backing], before: (&Self, &[&Backing])) {
        let pages = before.1.iter().map(|before| {
            let same: Vec<_> = all.iter().filter(|backing| backing.is_of_file_of(before)).collect();
            // Once, however many regions have it: the rest is of files that go.
            let is_noted = |page: &u64| same.iter().fold(false, |noted, backing| backing.note(*page) | noted);
            before.touched_pages().filter(is_noted).count() as u64
        });
        let pages = pages.sum();
        let moved = before.0.used.fetch_update(Relaxed, Relaxed, |used| Some(used.saturating_sub(pages)));
        self.used.fetch_add(moved.unwrap_or_default().min(pages), Relaxed);
    }

    /// Why the client is to go, where something was not touched.
    pub(crate) fn refusal(&self) -> Option<NoPages> {
        if self.is_out_of_memory.load(Relaxed) {
            return Some(NoPages::System);
        }
        let (made, most) = (self.user.held.pages.value() * PAGE, self.pages_max * PAGE);
        self.is_refused.load(Relaxed).then_some(NoPages::Share { uid: self.user.uid, made, most })
    }

    /// Ends the count: gives back what the files do not have, and says what is left.
    fn end(&self, all: &[&Backing]) -> u64 {
        let there = all.iter().fold(0, |sum: u64, backing| sum.saturating_add(backing.pages()));
        let used = self.used.swap(0, Relaxed);
        self.user.held.pages.give_back(used.saturating_sub(there));
        used.min(there)
    }
}

/// Memory of clients that have gone, of which the host made pages: another process may still have it, and as long as one has, they are the host's. The system
/// says when a file is gone (inotify(7)).
#[derive(Debug)]
pub(crate) struct Departed {
    watch: Option<OwnedFd>,
    /// Pages by the number of a watch, and whose they were.
    debts: HashMap<i32, Vec<(Arc<User>, u64)>>,
}

impl Departed {
    pub(crate) fn new() -> Self {
        let watch = inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK).ok();
        Self { watch, debts: HashMap::new() }
    }

    /// Takes over what was made in memory that is about to be let go of. Where the system cannot watch it, the user has so much less for good.
    pub(crate) fn add(&mut self, faults: &Faults, all: &[&Backing]) {
        let mut left = faults.end(all);
        for backing in all {
            let pages = backing.pages().min(left);
            left -= pages;
            if pages == 0 {
                continue;
            }
            let (Some(watch), Some(file)) = (&self.watch, &backing.file) else { continue };
            if let Ok(number) = inotify::add_watch(watch, path_of(file), WatchFlags::DELETE_SELF) {
                self.debts.entry(number).or_default().push((Arc::clone(faults.user()), pages));
            }
        }
    }

    /// Gives back what is gone.
    pub(crate) fn settle(&mut self) {
        let Some(watch) = &self.watch else { return };
        let mut space = [MaybeUninit::uninit(); 4096];
        let mut events = inotify::Reader::new(watch, &mut space);
        while let Ok(event) = events.next() {
            if event.events().contains(ReadFlags::IGNORED) {
                for (user, pages) in self.debts.remove(&event.wd()).into_iter().flatten() {
                    user.held.pages.give_back(pages);
                }
            }
        }
    }
}

fn is_same(one: &File, other: &File) -> bool {
    let id = |file: &File| file.metadata().map(|about| (about.dev(), about.ino())).ok();
    id(one).is_some() && id(one) == id(other)
}

fn path_of(file: &File) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd()))
}

/// Bytes of a page, as the system counts them for files in memory.
pub(crate) const PAGE: u64 = 4096;

/// Pages for which bits are made at once: 16 MiB, more than a program's client has.
const PART_PAGES: u64 = 4096;
const WORDS: usize = 64;

#[cfg(test)]
mod tests {
    use rustix::fs::{FallocateFlags, fallocate};

    use super::*;

    const MAX: u64 = 600;

    fn user() -> Arc<User> {
        Arc::new(User::default())
    }

    /// A file of so many pages, none of which is there.
    fn sparse(pages: u64) -> (Region, File, Backing) {
        let (region, file) = Region::create(c"sparse", place(pages)).unwrap();
        let backing = backing_of(&file, &[], 0, pages);
        (region, file, backing)
    }

    /// What a host has of so many pages of a file.
    fn backing_of(file: &File, known: &[&Backing], first: u64, pages: u64) -> Backing {
        let region = Region::of_peer(file, first * PAGE, pages * PAGE).unwrap();
        Backing::of(file, known, Arc::new(region), first * PAGE)
    }

    fn place(page: u64) -> usize {
        usize::try_from(page * PAGE).unwrap()
    }

    #[test]
    fn pages_that_the_host_makes_are_counted_once_and_end_at_the_users_share() {
        let (user, (region, file, backing)) = (user(), sparse(1_000));
        let faults = Faults::new(Arc::clone(&user), MAX);
        let mut made = 0;
        for page in 0..1_000 {
            if faults.touch(&backing, place(page), 1) == Touch::Counted {
                region.copy_in(place(page), &[1]).unwrap();
                made += 1;
            }
        }
        assert_eq!((made, backing.pages(), user.held.pages.value()), (MAX, MAX, MAX));
        assert_eq!(
            faults.touch(&backing, 0, place(MAX)),
            Touch::Counted,
            "what is there may be touched again"
        );
        assert_eq!(faults.touch(&backing, place(MAX - 1), 4097), Touch::Refused, "and not beyond");
        let refusal = NoPages::Share { uid: 0, made: MAX * PAGE, most: MAX * PAGE };
        assert_eq!((faults.refusal(), user.refused.value()), (Some(refusal), 1));
        // Another client of the user has no more, but what has pages.
        let other = Faults::new(Arc::clone(&user), MAX);
        let again = backing_of(&file, &[], 1, 999);
        assert_eq!(other.touch(&again, place(998), 1), Touch::Refused);
        assert_eq!(
            other.touch(&again, 0, place(MAX - 1)),
            Touch::There,
            "it may be taken away: not for later"
        );
        assert_eq!(other.touch(&again, place(MAX - 2), 4097), Touch::Refused);
    }

    #[test]
    fn pages_are_counted_each_once_however_spans_lie_over_them() {
        let (user, (_region, _file, backing)) = (user(), sparse(5_000));
        let faults = Faults::new(Arc::clone(&user), 5_000);
        // First byte, bytes, pages counted in all from then on: within a word, over its end, over that of a part, all.
        for (at, len, sum) in [
            (1, 4095, 1),
            (0, 4097, 2),
            (62 * 4096, 3 * 4096, 5),
            (63 * 4096, 4096, 5),
            (4095 * 4096, 8192, 7),
            (0, 0, 7),
            (0, 5_000 * 4096, 5_000),
        ] {
            assert_eq!(faults.touch(&backing, at, len), Touch::Counted);
            assert_eq!(user.held.pages.value(), sum, "{at}, {len}");
        }
    }

    #[test]
    fn who_goes_and_keeps_the_memory_has_used_it_until_it_is_gone() {
        let (user, (region, file, backing)) = (user(), sparse(500));
        let faults = Faults::new(Arc::clone(&user), MAX);
        assert_eq!(faults.touch(&backing, 0, place(400)), Touch::Counted);
        // The client takes some of them away.
        fallocate(&file, FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE, 0, 100 * PAGE).unwrap();
        let mut departed = Departed::new();
        departed.add(&faults, &[&backing]);
        drop((faults, backing, region));
        departed.settle();
        assert_eq!(user.held.pages.value(), 300, "the client has the file");
        drop(file);
        departed.settle();
        assert_eq!((user.held.pages.value(), departed.debts.len()), (0, 0));
    }

    #[test]
    fn of_a_file_that_cannot_be_asked_no_page_is_known_to_be_there() {
        let (user, (region, _file, backing)) = (user(), sparse(1_000));
        region.copy_in(0, &vec![7; place(1_000)]).unwrap();
        let (faults, unknown) = (Faults::new(Arc::clone(&user), MAX), Backing { file: None, ..backing });
        let touched =
            (0..1_000).filter(|page| faults.touch(&unknown, place(*page), 4096) == Touch::Counted).count();
        assert_eq!(touched as u64, MAX);
    }

    #[test]
    fn of_each_file_of_a_clients_memory_it_is_known_which_pages_are_there() {
        let (user, (region, file, backing)) = (user(), sparse(4));
        let faults = Faults::new(Arc::clone(&user), 1);
        assert_eq!(faults.touch(&backing, 0, 1), Touch::Counted);
        region.copy_in(0, &vec![7; place(4)]).unwrap();
        // A second backend of a guest, wholly made, too; and a third region that is of the first file.
        let (other_region, other_file, _) = sparse(4);
        other_region.copy_in(0, &vec![7; place(3)]).unwrap();
        let other = backing_of(&other_file, &[&backing], 0, 4);
        let third = backing_of(&file, &[&other, &backing], 1, 2);
        assert_eq!(faults.touch(&backing, 4095, 2), Touch::There);
        assert_eq!(faults.touch(&other, 0, place(3)), Touch::There);
        assert_eq!(faults.touch(&third, 0, place(2)), Touch::There);
        assert_eq!(faults.touch(&other, 0, place(3) + 1), Touch::Refused);
        assert!(Arc::ptr_eq(third.file.as_ref().unwrap(), backing.file.as_ref().unwrap()), "one descriptor");
        assert!(!Arc::ptr_eq(other.file.as_ref().unwrap(), backing.file.as_ref().unwrap()));
    }

    #[test]
    fn what_is_made_in_each_file_of_a_client_that_goes_is_given_back() {
        let (user, (region, file, backing)) = (user(), sparse(10));
        let (other_region, other_file, _) = sparse(10);
        let other = backing_of(&other_file, &[&backing], 0, 10);
        let faults = Faults::new(Arc::clone(&user), MAX);
        assert_eq!(faults.touch(&backing, 0, place(3)), Touch::Counted);
        assert_eq!(faults.touch(&other, 0, place(4)), Touch::Counted);
        let mut departed = Departed::new();
        departed.add(&faults, &[&backing, &other]);
        drop((faults, backing, other, file, region));
        departed.settle();
        assert_eq!(user.held.pages.value(), 4);
        drop((other_file, other_region));
        departed.settle();
        assert_eq!(user.held.pages.value(), 0);
    }

    #[test]
    fn a_page_that_the_system_does_not_make_is_refused_and_costs_the_user_nothing() {
        let (user, (_region, file, mut backing)) = (user(), sparse(4));
        let faults = Faults::new(Arc::clone(&user), MAX);
        // Behind the region's end none can be made.
        backing.region = backing_of(&file, &[], 0, 2).region;
        assert_eq!(faults.touch(&backing, place(1), 4096), Touch::Counted);
        assert_eq!(faults.touch(&backing, place(1), 4097), Touch::Refused);
        assert_eq!((user.held.pages.value(), faults.refusal()), (1, Some(NoPages::System)));
        assert_eq!(faults.touch(&backing, place(1), 4096), Touch::Counted, "what is there goes on");
    }

    /// Core time of this thread for one look, in ns: the least of several.
    fn core_time_of(look: impl Fn()) -> i64 {
        let now = || {
            let now = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
            now.tv_sec * 1_000_000_000 + now.tv_nsec
        };
        let times = (0..20).map(|_| {
            let before = now();
            look();
            now() - before
        });
        times.min().unwrap()
    }

    #[test]
    fn to_look_for_pages_beyond_the_share_takes_as_long_as_the_span_however_much_memory_there_is() {
        const PAGES: u64 = 16_384;
        let (user, (region, _file, backing)) = (user(), sparse(PAGES));
        region.make_pages(0, place(PAGES)).unwrap();
        let faults = Faults::new(user, 0);
        let time_at =
            |page| core_time_of(|| assert_eq!(faults.touch(&backing, place(page), 16), Touch::There));
        let (first, last) = (time_at(0), time_at(PAGES - 1));
        // To walk through 64 MiB takes some 500 times what a look takes.
        assert!(first < 50 * last, "{first} ns at the first page, {last} at the last");
    }

    #[test]
    fn pages_of_a_file_that_is_told_of_again_are_counted_once() {
        let (user, (_region, file, backing)) = (user(), sparse(1_000));
        let first = Faults::new(Arc::clone(&user), MAX);
        assert_eq!(first.touch(&backing, place(100), place(200)), Touch::Counted);
        let (_gone_region, _gone_file, gone) = sparse(100);
        assert_eq!(first.touch(&gone, 0, place(100)), Touch::Counted);
        // The same file: from its page 50 on, and a second region of 100 of these pages.
        let again = backing_of(&file, &[], 50, 900);
        let one = backing_of(&file, &[&again], 150, 100);
        let (_region, _other, other) = sparse(1_000);
        let second = Faults::new(Arc::clone(&user), MAX);
        second.take_over(&[&other, &again, &one], (&first, &[&backing, &gone]));
        assert_eq!(second.touch(&again, place(50), place(200)), Touch::Counted);
        assert_eq!(
            (user.held.pages.value(), second.used.load(Relaxed), first.used.load(Relaxed)),
            (300, 200, 100)
        );
        assert_eq!(second.touch(&again, place(49), place(202)), Touch::Counted);
        assert_eq!(
            second.touch(&other, place(100), place(200)),
            Touch::Counted,
            "of another file they are new"
        );
        assert_eq!(user.held.pages.value(), 502);
    }
}
