//! Unsafe code: which crates may contain it, and in which of their files.

use super::Finding;
use crate::rust::{code_only, has_word, is_word};
use crate::tree::{Package, TextFile};

/// Crate and what may contain unsafe code in it, from its folder: files, and folders with all below them.
const FILES_WITH_UNSAFE_CODE: &[(&str, &[&str])] = &[
    (
        "evener-fd",
        &["src/checked_fd.rs", "src/ffi.rs", "src/limit.rs", "src/range_lock.rs", "tests/program.rs"],
    ),
    (
        "evener-kernels",
        &[
            "src/aes.rs",
            "src/bitsliced/",
            "src/message.rs",
            "src/stack.rs",
            "src/stealing.rs",
            "src/gcm/",
            "src/level.rs",
            "src/hashes/absent.rs",
            "src/hashes/burst.rs",
            "src/hashes/entries.rs",
            "src/hashes/extensions.rs",
            "src/hashes/mod.rs",
            "src/hashes/sha1.rs",
            "src/hashes/sha2.rs",
            "src/hashes/space.rs",
            "src/hashes/tail.rs",
            "src/hashes/words.rs",
            "src/lanes/",
            "src/modes/",
            "src/turn.rs",
            "src/vector/",
            "src/absent.rs",
            "src/absent_modes.rs",
            "tests/gcm.rs",
            "tests/modes.rs",
            "tests/constant_time/subjects.rs",
            "tests/disassembly.rs",
            "tests/secrets.rs",
            "tests/stack.rs",
            "examples/modes_speed.rs",
        ],
    ),
    ("evener-startup", &["src/descriptor.rs", "src/ending_signals.rs", "src/ffi.rs"]),
    ("evener-ring", RING),
    ("evener-arbiter", &["tests/support/ffi.rs"]),
    ("evener-vfio", &["src/ffi.rs", "src/function.rs", "src/registers.rs"]),
    (
        "evener-host",
        &[
            "src/service/client_span.rs",
            "src/service/notify.rs",
            "src/service/slots.rs",
            "src/service/time_slice.rs",
            "tests/support/ffi.rs",
        ],
    ),
    ("evener-python", &["src/burst/engine.rs", "src/ffi.rs"]),
    ("evener-ossl-sys", &["src/ffi.rs"]),
    ("evener-evp-sys", &["src/ffi.rs"]),
    ("evener-evp", &["src/ffi/"]),
    (
        "evener-provider",
        &[
            "src/entry/",
            "src/inner_cipher/",
            "src/cipher/context/mod.rs",
            "src/inner_provider/",
            "src/native/blocks/sharing.rs",
            "src/native/blocks/mod.rs",
            "src/native/blocks/padding.rs",
            "src/native/blocks/stream.rs",
            "src/native/gcm/sharing.rs",
            "src/native/gcm/mod.rs",
            "src/native/mod.rs",
            "src/native/split.rs",
            "src/counters/thread_table.rs",
            "src/core/",
            "src/ffi/",
            "tests/support/ffi.rs",
            "tests/support/ffi/",
            "examples/overhead/ffi.rs",
            "examples/overhead/ffi/",
        ],
    ),
    ("evener-c", &["src/ffi/", "src/queue/", "tests/queue.rs"]),
    ("evener-driver-libcrypto", &["src/ffi.rs", "src/ffi/"]),
    ("evener-driver-multibuffer", &["src/ffi/"]),
    ("evener-driver-virtio", &["tests/fork.rs"]),
    ("evener-driver-kernel", &["src/afalg/ffi.rs", "src/devcrypto/ffi.rs", "src/devcrypto/mock_node/ffi.rs"]),
    ("evener-testing", &["src/programs/child.rs"]),
    ("evener-conformance-openssl", &["src/ffi/"]),
    ("evener-provider-test", &["src/ffi.rs"]),
    ("evener-bench", &["src/bin/libevener/ffi.rs", "src/processes/child.rs"]),
];

const RING: &[&str] = &[
    "src/lending/caller_slot.rs",
    "src/lending/combining_list/batch.rs",
    "src/lending/combining_list/mod.rs",
    "src/lending/helper_slot.rs",
    "src/lending/loan.rs",
    "src/lending/parts.rs",
    "src/lending/object_pool.rs",
    "src/process/mapped_words.rs",
    "src/process/mapping.rs",
    "src/process/pages.rs",
    "src/process/per_fork.rs",
    "src/process/per_process.rs",
    "src/process/region.rs",
    "src/process/segment.rs",
    "src/process/wipe.rs",
    "src/thread/",
    "src/queue/ring.rs",
    "src/queue/slot.rs",
    "src/queue/storage.rs",
    "src/virtqueue/mapped_queue.rs",
    "src/wait/futex.rs",
    "tests/loom_lend.rs",
    "tests/mapping.rs",
    "tests/per_process.rs",
    "tests/virtqueue_mapped.rs",
];

/// Findings for unsafe code, its lint and C's calling convention outside the files that are listed.
pub(super) fn check(packages: &[Package], files: &[TextFile]) -> Vec<Finding> {
    packages.iter().flat_map(|package| check_package(package, &own_files(package, packages, files))).collect()
}

/// What may contain unsafe code in a crate, from its folder.
pub(super) fn files_of(name: &str) -> &'static [&'static str] {
    FILES_WITH_UNSAFE_CODE
        .iter()
        .find(|(other, _)| *other == name)
        .map(|(_, files)| *files)
        .unwrap_or_default()
}

/// The files below the package's folder, without those of packages that lie in it.
fn own_files<'f>(package: &Package, packages: &[Package], files: &'f [TextFile]) -> Vec<&'f TextFile> {
    let below =
        |folder: &str, path: &str| path.strip_prefix(folder).is_some_and(|rest| rest.starts_with('/'));
    let inner = packages.iter().filter(|other| below(&package.folder, &other.folder));
    let inner: Vec<_> = inner.map(|other| other.folder.as_str()).collect();
    let mine = files.iter().filter(|file| below(&package.folder, &file.path));
    mine.filter(|file| !inner.iter().any(|folder| below(folder, &file.path))).collect()
}

fn check_package(package: &Package, files: &[&TextFile]) -> Vec<Finding> {
    let rows = FILES_WITH_UNSAFE_CODE.iter().find(|(name, _)| *name == package.name).map(|(_, files)| *files);
    let inside = format!("{}/", package.folder);
    let mut found = Vec::new();
    for file in files {
        if package.roots.contains(&file.path) {
            found.extend(check_root(rows.is_some(), file));
        }
        if file.path == format!("{inside}Cargo.toml") {
            found.extend(check_manifest(file));
        }
        if file.path.ends_with(".rs") {
            let may = rows.is_some_and(|rows| rows.iter().any(|row| covers(row, &file.path[inside.len()..])));
            found.extend(check_source(may, file));
        }
    }
    found.extend(rows.unwrap_or_default().iter().filter_map(|listed| check_row(&inside, listed, files)));
    found
}

/// A row outlives its reason where the file has lost its unsafe code.
fn check_row(inside: &str, listed: &str, files: &[&TextFile]) -> Option<Finding> {
    let row = format!("{inside}{listed}");
    let needed =
        files.iter().any(|file| covers(&row, &file.path) && has_word(&code_only(&file.text), "unsafe"));
    (!needed)
        .then(|| Finding::new(&row, 1, "no unsafe code here: strike it from xtask/src/tidy/unsafe_code.rs"))
}

fn covers(row: &str, path: &str) -> bool {
    row == path || row.ends_with('/') && path.starts_with(row)
}

/// Every root says what its crate is: one with unsafe code and the reason, or one that forbids it. A program beside a library with unsafe code is a crate of its own,
/// and may forbid it.
fn check_root(has_unsafe_code: bool, file: &TextFile) -> Option<Finding> {
    let forbids = file.text.lines().any(|line| line.starts_with(FORBIDS));
    if forbids && !file.path.ends_with("/lib.rs") {
        return None;
    }
    let (wanted, message) = match has_unsafe_code {
        true => (
            "#![allow(unsafe_code, reason = \"room: ",
            "a crate with unsafe code starts with `#![allow(unsafe_code, reason = \"room: …\")]`",
        ),
        false => (FORBIDS, "a crate without unsafe code says `#![forbid(unsafe_code)]`"),
    };
    let says = file.text.lines().any(|line| line.starts_with(wanted));
    (!says).then(|| Finding::new(&file.path, 1, message))
}

const FORBIDS: &str = "#![forbid(unsafe_code)]";

fn check_manifest(file: &TextFile) -> Option<Finding> {
    let lines: Vec<&str> = file.text.lines().map(str::trim).collect();
    let takes = lines.windows(2).any(|pair| pair == ["[lints]", "workspace = true"]);
    (!takes).then(|| {
        Finding::new(&file.path, 1, "a member takes the workspace's lints: `[lints]`, `workspace = true`")
    })
}

fn check_source(may: bool, file: &TextFile) -> Vec<Finding> {
    let code = code_only(&file.text);
    let is_ffi = file.path.ends_with("/ffi.rs") || file.path.contains("/ffi/");
    let mut found = Vec::new();
    for (number, line) in code.lines().enumerate() {
        let mut report = |message: &str| found.push(Finding::new(&file.path, number + 1, message));
        if !may && has_word(line, "unsafe") {
            report("`unsafe` outside the files listed in xtask/src/tidy/unsafe_code.rs");
        }
        if !is_ffi && speaks_c(line) {
            report("`extern` functions stand in ffi.rs or below ffi/ only");
        }
    }
    found
}

/// `extern`, but not `extern crate`.
fn speaks_c(code_line: &str) -> bool {
    let words: Vec<&str> = code_line.split(|c: char| !is_word(c)).filter(|word| !word.is_empty()).collect();
    words.iter().enumerate().any(|(at, word)| *word == "extern" && words.get(at + 1) != Some(&"crate"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const FORBIDS: &str = "#![forbid(unsafe_code)]\n";
    const ALLOWS: &str = "#![allow(unsafe_code, reason = \"room: a test\")]\n";

    /// Findings in one file of a crate; that the crate's other files are missing is left out.
    fn found_in(name: &str, file: &str, text: &str) -> Vec<String> {
        let mut found = check_one(name, file, text);
        found.retain(|finding| !finding.contains("strike it"));
        found
    }

    fn package(name: &str, folder: &str) -> Package {
        let roots = vec![format!("{folder}/src/lib.rs")];
        Package {
            name: name.into(),
            folder: folder.into(),
            uses: Vec::new(),
            tests_use: Vec::new(),
            roots,
            rooms: Vec::new(),
        }
    }

    fn check_one(name: &str, file: &str, text: &str) -> Vec<String> {
        let package = package(name, "crates/x");
        let file = TextFile { path: format!("crates/x/{file}"), text: text.into() };
        check(&[package], &[file]).iter().map(Finding::to_string).collect()
    }

    #[test]
    fn a_crate_without_a_row_forbids_unsafe_code() {
        assert!(found_in("evener-core", "src/lib.rs", FORBIDS).is_empty());
        assert_eq!(found_in("evener-core", "src/lib.rs", "//! #![forbid(unsafe_code)]").len(), 1);
        assert_eq!(found_in("evener-core", "src/lib.rs", ALLOWS).len(), 1);
    }

    #[test]
    fn a_crate_with_a_row_says_why() {
        assert!(found_in("evener-ring", "src/lib.rs", ALLOWS).is_empty());
        assert_eq!(found_in("evener-ring", "src/lib.rs", "#![allow(unsafe_code)]").len(), 1);
    }

    #[test]
    fn a_program_beside_a_room_s_library_may_forbid_and_the_library_may_not() {
        let mut package = package("evener-ring", "crates/x");
        package.roots.push("crates/x/src/bin/a.rs".into());
        let found = |file: &str, text: &str| {
            let file = TextFile { path: format!("crates/x/{file}"), text: text.into() };
            let found = check(std::slice::from_ref(&package), &[file]);
            found.iter().filter(|finding| !finding.to_string().contains("strike it")).count()
        };
        assert_eq!([found("src/bin/a.rs", FORBIDS), found("src/bin/a.rs", "")], [0, 1]);
        assert_eq!(found("src/lib.rs", FORBIDS), 1);
    }

    #[test]
    fn unsafe_code_of_a_driver_stands_in_its_ffi_file() {
        let code = "// one\nfn a() { unsafe { b() } }";
        assert!(found_in("evener-driver-libcrypto", "src/ffi.rs", code).is_empty());
        let found = found_in("evener-driver-libcrypto", "src/plain.rs", code);
        assert!(found[0].starts_with("crates/x/src/plain.rs:2: `unsafe`"), "{found:?}");
        assert_eq!(found_in("evener-core", "tests/a.rs", code).len(), 1);
        assert!(found_in("evener-driver-multibuffer", "src/ffi/a.rs", code).is_empty());
        assert!(found_in("evener-core", "tests/a.rs", "// unsafe\nconst A: &str = \"unsafe\";").is_empty());
    }

    #[test]
    fn a_crate_within_the_folder_of_another_has_a_row_of_its_own() {
        let packages = [package("evener-core", "crates"), package("evener-provider-test", "crates/x")];
        let file = |path: &str| TextFile { path: path.into(), text: "unsafe impl A for B {}".into() };
        assert!(check(&packages, &[file("crates/x/src/ffi.rs")]).is_empty());
        let found = check(&packages, &[file("crates/x/src/ffi.rs"), file("crates/xy.rs")]);
        assert_eq!(found.len(), 1, "{}", found.len());
    }

    #[test]
    fn a_row_without_unsafe_code_is_found() {
        let driver = "evener-provider-test";
        assert_eq!(check_one(driver, "src/ffi.rs", "// unsafe").len(), 1);
        assert!(check_one(driver, "src/ffi.rs", "unsafe impl A for B {}").is_empty());
    }

    #[test]
    fn extern_functions_stand_in_ffi_files() {
        let code = "extern \"C\" fn a() {}";
        assert!(found_in("evener-ring", "src/ffi.rs", code).is_empty());
        assert_eq!(found_in("evener-ring", "src/queue/ring.rs", code).len(), 1);
        assert_eq!(found_in("evener-core", "src/a.rs", "type A = extern fn(u8);").len(), 1);
        assert!(found_in("evener-core", "src/a.rs", "extern crate std;").is_empty());
    }

    #[test]
    fn a_member_takes_the_lints_of_the_workspace() {
        assert!(found_in("evener-core", "Cargo.toml", "[lints]\nworkspace = true\n").is_empty());
        assert_eq!(found_in("evener-core", "Cargo.toml", "[package]\nversion.workspace = true\n").len(), 1);
    }
}
