//! Counts reach processes that may read them while the process runs, and no file, however made, harms a reader.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test; what is skipped is said")]

use std::collections::HashMap;
use std::fs::{self, Permissions};
use std::os::unix::fs::{FileExt as _, MetadataExt as _, PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio, id};
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::time::{Duration, Instant};
use std::{env, thread};

use evener::core::Direction::{Decrypt, Encrypt};
use evener::core::counts::{Count, FILE_WORDS, Kind, MAGIC, Row, Unreadable, VERSION};
use evener::counts_file::{
    Directories, LocalCounter, Record, RecordError, Statistics, ThreadDigests, Totals, ended_files,
    of_process, of_user,
};
use proptest::prelude::*;
use rustix::process::geteuid;

/// A private directory, removed at the end.
struct Ground(PathBuf);

impl Ground {
    fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let name = format!("evener-statistics-{}-{}", id(), NEXT.fetch_add(1, Relaxed));
        let path = env::temp_dir().join(name);
        fs::create_dir(&path).unwrap();
        fs::set_permissions(&path, Permissions::from_mode(0o700)).unwrap();
        Self(path)
    }

    fn places(&self) -> Directories {
        Directories::only(self.0.clone())
    }

    fn file(&self, pid: u32) -> PathBuf {
        self.0.join(format!("{pid}.stats"))
    }

    fn write(&self, pid: u32, words: &[u32]) {
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
        fs::write(self.file(pid), bytes).unwrap();
    }

    fn own(&self) -> Result<Record, RecordError> {
        of_process(&self.places(), geteuid().as_raw(), id()).unwrap()
    }
}

impl Drop for Ground {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.0).ok();
    }
}

const CBC: &str = "AES-128-CBC";

fn row(bytes: usize) -> Row {
    Row::of(Kind::named(CBC), Encrypt, bytes)
}

fn counts(row: Totals) -> [u64; 9] {
    Count::ALL.map(|count| row.of(count))
}

#[test]
fn what_threads_count_is_read_while_they_run() {
    let ground = Ground::new();
    let statistics = Statistics::new(ground.places()).unwrap();
    assert!(!ground.file(id()).exists(), "nothing is opened before the first count");
    // A thread that comes while another makes the file loses a count, as documented; so the first one comes alone.
    statistics.request(Kind::named(CBC), Encrypt, 20_000, Count::Routed);
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let mut direct = LocalCounter::default();
                for _ in 0..1_000 {
                    if direct.record(64) {
                        statistics.flush(Kind::named(CBC), Encrypt, Count::Direct, &mut direct);
                    }
                }
                statistics.flush(Kind::named(CBC), Encrypt, Count::Direct, &mut direct);
                assert!(direct.is_empty());
                statistics.request(Kind::OTHER, Decrypt, usize::MAX, Count::Split);
            });
        }
    });
    statistics.add(row(20_000), Count::TakenBack, 3);
    let mut by_kernel = LocalCounter::default();
    assert!(!by_kernel.record(64));
    statistics.flush(Kind::named(CBC), Encrypt, Count::Kernel, &mut by_kernel);
    let record = ground.own().unwrap();
    assert_eq!(counts(record.row(row(64))), [4_000, 1, 0, 0, 0, 256_064, 0, 0, 0]);
    assert_eq!(counts(record.row(row(20_000))), [0, 0, 0, 0, 1, 20_000, 3, 0, 0]);
    let most = record.row(Row::of(Kind::OTHER, Decrypt, usize::MAX));
    assert_eq!((most.requests(), most.of(Count::Split)), (4, 4));
    assert_eq!(Row::all().filter(|row| !record.row(*row).is_empty()).count(), 3);
    assert!((record.pid(), record.has_ended()) == (id(), false));
}

/// A step of a thread that hashes, by its context.
#[derive(Clone, Copy, Debug)]
enum Step {
    Begin(usize),
    Update(usize, usize),
    Finish(usize),
}

const DIGESTS: [&str; 3] = ["SHA-1", "SHA-256", "MD5"];

fn digest(ctx: usize) -> Kind {
    Kind::named(DIGESTS[ctx % DIGESTS.len()])
}

/// Does the steps as a provider's entry points do, each by its short form where that will do.
fn hash(hashes: &ThreadDigests, statistics: &Statistics, steps: &[Step]) {
    // Addresses are no small numbers.
    let number = |ctx: usize| 0x1000 + ctx * 0x80;
    for step in steps {
        match *step {
            Step::Begin(ctx) if hashes.begins(number(ctx)) => {}
            Step::Begin(ctx) => hashes.begin(number(ctx), ThreadDigests::first(digest(ctx))),
            Step::Update(ctx, len) if hashes.goes_on(number(ctx), len) => {}
            Step::Update(ctx, len) => hashes.update(number(ctx), ThreadDigests::first(digest(ctx)), len),
            Step::Finish(ctx) if hashes.finishes(number(ctx), ThreadDigests::first(digest(ctx))) => {}
            Step::Finish(ctx) => {
                if hashes.finish(number(ctx), ThreadDigests::first(digest(ctx))) {
                    hashes.flush(statistics);
                }
            }
        }
    }
}

/// What is to be read of these steps: finished messages under their sizes; bytes of others under what they had come to.
fn expected(steps: &[Step]) -> HashMap<Row, (u64, u64)> {
    let (mut begun, mut rows) = (HashMap::<usize, usize>::new(), HashMap::<Row, (u64, u64)>::new());
    let mut count = |ctx: usize, bytes: usize, messages: u64| {
        let row = rows.entry(Row::of(digest(ctx), Encrypt, bytes)).or_default();
        *row = (row.0 + messages, row.1 + bytes as u64);
    };
    for step in steps {
        match *step {
            Step::Begin(ctx) => count(ctx, begun.remove(&ctx).unwrap_or(0), 0),
            Step::Update(ctx, len) => *begun.entry(ctx).or_default() += len,
            Step::Finish(ctx) => count(ctx, begun.remove(&ctx).unwrap_or(0), 1),
        }
    }
    begun.into_iter().for_each(|(ctx, bytes)| count(ctx, bytes, 0));
    rows.retain(|_, counts| *counts != (0, 0));
    rows
}

fn steps(contexts: usize) -> impl Strategy<Value = Vec<Step>> {
    let len = prop_oneof![4 => 0..300_usize, 1 => 0..3_000_000_usize];
    let step = prop_oneof![
        1 => (0..contexts).prop_map(Step::Begin),
        3 => (0..contexts, len).prop_map(|(ctx, len)| Step::Update(ctx, len)),
        2 => (0..contexts).prop_map(Step::Finish),
    ];
    prop::collection::vec(step, 0..400)
}

fn read(ground: &Ground) -> HashMap<Row, (u64, u64)> {
    let Ok(record) = ground.own() else { return HashMap::new() };
    let counts = |row: Row| (record.row(row).of(Count::Direct), record.row(row).of(Count::Bytes));
    Row::all().map(|row| (row, counts(row))).filter(|(_, counts)| *counts != (0, 0)).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    /// Nine: one at hand and eight aside.
    #[test]
    fn each_message_is_counted_under_its_size_while_few_are_unfinished(steps in steps(9)) {
        let ground = Ground::new();
        let (statistics, hashes) = (Statistics::new(ground.places()).unwrap(), ThreadDigests::new());
        // A row of an empty file is compared with nothing.
        statistics.add(row(1), Count::Locked, 1);
        hash(&hashes, &statistics, &steps);
        hashes.end(&statistics);
        prop_assert_eq!(read(&ground), expected(&steps));
    }

    #[test]
    fn messages_and_bytes_are_exact_however_many_are_unfinished_on_two_threads(
        steps in steps(30),
        whose in prop::collection::vec(any::<bool>(), 400),
    ) {
        let ground = Ground::new();
        let statistics = Statistics::new(ground.places()).unwrap();
        statistics.add(row(1), Count::Locked, 1);
        // Two threads in turn: each has one of these.
        let threads = [ThreadDigests::new(), ThreadDigests::new()];
        for (step, second) in steps.iter().zip(whose) {
            hash(&threads[usize::from(second)], &statistics, &[*step]);
        }
        threads.iter().for_each(|hashes| hashes.end(&statistics));
        let sum = |rows: HashMap<Row, (u64, u64)>| {
            let mut kinds = HashMap::<&str, (u64, u64)>::new();
            for (row, (messages, bytes)) in rows {
                let sum = kinds.entry(row.kind().name()).or_default();
                *sum = (sum.0 + messages, sum.1 + bytes);
            }
            kinds
        };
        prop_assert_eq!(sum(read(&ground)), sum(expected(&steps)));
    }
}

#[test]
fn what_is_not_shown_yet_is_an_eighth_of_what_is_at_most_and_256_messages() {
    let ground = Ground::new();
    let (statistics, hashes) = (Statistics::new(ground.places()).unwrap(), ThreadDigests::new());
    let shown = || read(&ground).values().map(|counts| counts.0).sum::<u64>();
    let mut most = 0;
    for done in 1..5_000 {
        hash(&hashes, &statistics, &[Step::Begin(0), Step::Update(0, 16), Step::Finish(0)]);
        let late = done - shown();
        assert!(late <= shown() / 8 && late < 256, "{late} of {done}");
        most = most.max(late);
    }
    assert_eq!(most, 255, "or each would be a look at the file");
    hashes.end(&statistics);
    assert_eq!(shown(), 4_999);
    hash(&hashes, &statistics, &[Step::Begin(0), Step::Update(0, 16), Step::Finish(0)]);
    assert_eq!(shown(), 5_000, "no flush comes behind the thread's end");
}

#[test]
fn a_file_holds_what_the_document_says_for_its_owner_only() {
    let ground = Ground::new();
    let statistics = Statistics::new(ground.places()).unwrap();
    statistics.add(Row::of(Kind::named("AES-128-ECB"), Encrypt, 65), Count::Bytes, 5 << 31);
    let file = fs::File::open(ground.file(id())).unwrap();
    let metadata = file.metadata().unwrap();
    assert_eq!(
        (metadata.mode() & 0o777, metadata.uid(), metadata.len()),
        (0o600, geteuid().as_raw(), 29_872)
    );
    assert!(metadata.blocks() * 512 >= metadata.len(), "every block is there");
    let word = |index: u64| {
        let mut bytes = [0; 4];
        file.read_exact_at(&mut bytes, 4 * index).unwrap();
        u32::from_ne_bytes(bytes)
    };
    assert_eq!([0, 1, 2, 3].map(word), [0x4556_5331, 2, 7_468, id()]);
    // Row 1, count 5: five changes of the lower word's top bit.
    assert_eq!((word(16 + 18 + 10), word(16 + 18 + 11)), (5, 1 << 31));
    let stat = fs::read_to_string("/proc/self/stat").unwrap();
    let start: u64 = stat.rsplit(") ").next().unwrap().split(' ').nth(19).unwrap().parse().unwrap();
    assert_eq!(u64::from(word(4)) | u64::from(word(5)) << 32, start);
    assert_eq!(word(14), own_namespace());
    let name = fs::read_to_string("/proc/self/comm").unwrap();
    let thread_of_test = ground.own().unwrap().name();
    assert!(!thread_of_test.is_empty() && name.len() > 1);
}

#[test]
fn a_directory_that_others_may_enter_or_that_is_a_link_is_not_used() {
    let ground = Ground::new();
    let open = ground.0.join("open");
    fs::create_dir(&open).unwrap();
    fs::set_permissions(&open, Permissions::from_mode(0o755)).unwrap();
    let private = ground.0.join("private");
    fs::create_dir(&private).unwrap();
    fs::set_permissions(&private, Permissions::from_mode(0o700)).unwrap();
    symlink(&private, ground.0.join("link")).unwrap();
    fs::write(ground.0.join("file"), "").unwrap();
    for name in ["open", "link", "file", "missing/below"] {
        let statistics = Statistics::new(Directories::only(ground.0.join(name))).unwrap();
        statistics.request(Kind::OTHER, Encrypt, 1, Count::Direct);
        assert!(of_user(&Directories::only(ground.0.join(name)), geteuid().as_raw()).is_empty(), "{name}");
        assert_eq!(
            fs::read_dir(&private).unwrap().count() + fs::read_dir(&open).unwrap().count(),
            0,
            "{name}"
        );
    }
    let made = Directories::only(ground.0.join("made"));
    Statistics::new(made.clone()).unwrap().request(Kind::OTHER, Encrypt, 1, Count::Direct);
    assert_eq!(of_user(&made, geteuid().as_raw()).len(), 1);
    assert_eq!(fs::metadata(ground.0.join("made")).unwrap().mode() & 0o777, 0o700);
}

#[test]
fn a_link_under_the_files_name_is_replaced_and_not_followed() {
    let ground = Ground::new();
    let victim = ground.0.join("victim");
    fs::write(&victim, "precious").unwrap();
    symlink(&victim, ground.file(id())).unwrap();
    let refused = ground.own().unwrap_err();
    assert!(matches!(refused, RecordError::Io(_)), "{refused}");
    let statistics = Statistics::new(ground.places()).unwrap();
    statistics.add(row(1), Count::Direct, 1);
    assert_eq!(fs::read(&victim).unwrap(), b"precious");
    assert_eq!(ground.own().unwrap().row(row(1)).requests(), 1);
}

/// A process that has ended, and its number.
fn ended() -> u32 {
    let mut child = Command::new("true").spawn().unwrap();
    child.wait().unwrap();
    child.id()
}

fn whole(pid: u32) -> Vec<u32> {
    let mut words = vec![0; FILE_WORDS];
    words[..4].copy_from_slice(&[MAGIC, VERSION, 7_468, pid]);
    words
}

#[test]
fn files_of_ended_processes_are_told_apart_and_removed() {
    let ground = Ground::new();
    let uid = geteuid().as_raw();
    let ended_pid = ended();
    ground.write(ended_pid, &whole(ended_pid));
    let mut reused = whole(1);
    reused[4] = 12_345;
    ground.write(1, &reused);
    fs::write(ground.0.join("notes.txt"), "kept").unwrap();
    let has_ended = |pid: u32| of_process(&ground.places(), uid, pid).map(|found| found.unwrap().has_ended());
    assert_eq!(has_ended(ended_pid), Some(true));
    Statistics::new(ground.places()).unwrap().add(row(1), Count::Direct, 1);
    let pids = || of_user(&ground.places(), uid).into_iter().map(|found| found.0).collect::<Vec<_>>();
    // So few are left to who asks next.
    let left = pids();
    assert!(left.len() == 3 && left.contains(&ended_pid), "{left:?}");
    // Process 1 began at another time than the file says. It may be another user's, whose directory is looked at then.
    assert_eq!((has_ended(1), has_ended(id())), (Some(true), Some(false)));
    assert_eq!(ended_files(&ground.places(), uid).remove(), left.len() - 1);
    assert_eq!(pids(), [id()]);
    assert!(ground.0.join("notes.txt").exists());
}

#[test]
fn what_ends_or_is_made_after_the_look_stays() {
    let (ground, uid) = (Ground::new(), geteuid().as_raw());
    let mut child = Command::new("sleep").arg("600").spawn().unwrap();
    let reused = ended();
    [child.id(), reused].iter().for_each(|pid| ground.write(*pid, &whole(*pid)));
    let shown = ended_files(&ground.places(), uid);
    child.kill().unwrap();
    child.wait().unwrap();
    // Another process, by its start.
    let mut later = whole(reused);
    later[4] = 12_345;
    ground.write(reused, &later);
    assert_eq!(shown.remove(), 0);
    assert!(ground.file(child.id()).exists() && ground.file(reused).exists());
    assert_eq!(ended_files(&ground.places(), uid).remove(), 2);
}

/// The inode of this process's namespace of process numbers.
fn own_namespace() -> u32 {
    u32::try_from(fs::metadata("/proc/self/ns/pid").unwrap().ino()).unwrap()
}

#[test]
fn a_process_of_another_namespace_is_not_taken_for_one_that_has_ended() {
    let (ground, uid, pid) = (Ground::new(), geteuid().as_raw(), ended());
    let mut words = whole(pid);
    words[14] = own_namespace() ^ 1;
    ground.write(pid, &words);
    assert_eq!(ended_files(&ground.places(), uid).remove(), 0);
    assert!(!of_process(&ground.places(), uid, pid).unwrap().unwrap().has_ended());
    // It counted before the machine was started.
    words[6] = 1;
    ground.write(pid, &words);
    assert_eq!(ended_files(&ground.places(), uid).remove(), 1);
}

/// Its first thread ends by the system call that ends a thread.
const WITHOUT_ITS_FIRST_THREAD: &str = "import ctypes, platform, threading, time
threading.Thread(target=time.sleep, args=(600,)).start()
ctypes.CDLL(None).syscall({'x86_64': 60}.get(platform.machine(), 93), 0)";

#[test]
fn a_process_counts_on_whose_first_thread_has_ended_while_others_run() {
    let (ground, uid) = (Ground::new(), geteuid().as_raw());
    let python = Command::new("python3").args(["-c", WITHOUT_ITS_FIRST_THREAD]).stdin(Stdio::null()).spawn();
    let Ok(mut child) = python else { return println!("skipped: there is no python3") };
    let stat = || fs::read_to_string(format!("/proc/{}/stat", child.id())).unwrap();
    let begun = Instant::now();
    while !stat().rsplit(')').next().unwrap().starts_with(" Z") {
        assert!(begun.elapsed() < Duration::from_secs(60), "{}", stat());
        thread::sleep(Duration::from_millis(1));
    }
    ground.write(child.id(), &whole(child.id()));
    let removed = ended_files(&ground.places(), uid).remove();
    child.kill().unwrap();
    assert_eq!(removed, 0);
    // Not reaped yet.
    let begun = Instant::now();
    while ended_files(&ground.places(), uid).remove() == 0 {
        assert!(begun.elapsed() < Duration::from_secs(60));
        thread::sleep(Duration::from_millis(1));
    }
    child.wait().unwrap();
}

#[test]
fn a_file_that_cannot_be_right_is_refused_with_its_reason() {
    let ground = Ground::new();
    let refused = || match ground.own().unwrap_err() {
        RecordError::Unreadable(reason) => reason,
        other => unreachable!("{other}"),
    };
    let file = ground.file(id());
    for (words, reason) in [
        (vec![], Unreadable::NotOurs),
        (vec![MAGIC], Unreadable::NotOurs),
        (vec![MAGIC.swap_bytes(), VERSION], Unreadable::NotOurs),
        (vec![MAGIC, 99], Unreadable::Version(99)),
        (whole(id())[..100].to_vec(), Unreadable::Short(100)),
        (whole(id() + 1), Unreadable::NotOurs),
    ] {
        ground.write(id(), &words);
        assert_eq!(refused(), reason);
    }
    fs::remove_file(&file).unwrap();
    assert!(Command::new("mkfifo").arg(&file).status().unwrap().success());
    assert_eq!(refused(), Unreadable::NotOurs);
    fs::remove_file(&file).unwrap();
    fs::create_dir(&file).unwrap();
    assert_eq!(refused(), Unreadable::NotOurs);
}

/// A file of noise behind a good header, or none.
fn is_read_to_the_end(path: &Path, ground: &Ground) -> bool {
    let Some(Ok(record)) = of_process(&ground.places(), geteuid().as_raw(), id()) else { return false };
    let mut sum = Totals::default();
    Row::all().for_each(|row| sum += record.row(row));
    record.name().chars().all(|c| !c.is_control()) && sum.requests() >= sum.of(Count::Split) && path.exists()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn noise_is_refused_or_read_and_never_more(
        noise in prop::collection::vec(any::<u32>(), 0..2 * FILE_WORDS),
        has_header: bool,
    ) {
        let ground = Ground::new();
        let mut words = noise;
        if has_header && words.len() >= 4 {
            words[..4].copy_from_slice(&[MAGIC, VERSION, 7_468, id()]);
        }
        ground.write(id(), &words);
        let expected = has_header && words.len() >= FILE_WORDS;
        prop_assert_eq!(is_read_to_the_end(&ground.file(id()), &ground), expected);
    }
}
