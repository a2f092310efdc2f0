//! Which crate may use which. A new crate is a decision: it needs a row here.

use super::Finding;
use crate::tree::Package;

/// Where a crate may look for help.
enum May {
    /// These members and no other.
    Use(&'static [&'static str]),
    /// Any member but those that none may use.
    UseAll,
}

use May::{Use, UseAll};

/// Crate, what it may use, what its tests may use besides.
const DIRECTIONS: &[(&str, May, &[&str])] = &[
    ("evener-core", Use(&[]), &["evener-vectors"]),
    ("evener-kernels", Use(&[]), &["evener-vectors"]),
    ("evener-fd", Use(&[]), &[]),
    ("evener-startup", Use(&[]), &[]),
    ("evener-ring", Use(&["evener-fd"]), &[]),
    ("evener-driver-libcrypto", Use(&["evener-core", "evener-evp-sys", "evener-ring"]), &["evener-vectors"]),
    ("evener-driver-lanes", Use(&["evener-core", "evener-kernels"]), DRIVER_TESTS),
    ("evener-driver-multibuffer", Use(&["evener-core", "evener-ring"]), DRIVER_TESTS),
    ("evener-arbiter", Use(&["evener-core", "evener-fd", "evener-ring"]), &[]),
    ("evener-vfio", Use(&["evener-fd", "evener-ring"]), &[]),
    (
        "evener-driver-virtio",
        Use(&["evener-core", "evener-fd", "evener-ring", "evener-vfio", "evener-wire"]),
        DRIVER_TESTS,
    ),
    ("evener-driver-kernel", Use(&["evener-core", "evener-fd", "evener-ring"]), DRIVER_TESTS),
    ("evener-driver-emulated", Use(&["evener-core", "evener-ring"]), DRIVER_TESTS),
    // Drivers are handed in, as by the runtime's own tests.
    ("evener", Use(&["evener-arbiter", "evener-core", "evener-fd", "evener-ring"]), RUNTIME_TESTS),
    (
        "evener-machine",
        Use(&[
            "evener",
            "evener-arbiter",
            "evener-driver-emulated",
            "evener-driver-kernel",
            "evener-driver-lanes",
            "evener-driver-libcrypto",
            "evener-driver-multibuffer",
            "evener-driver-virtio",
            "evener-fd",
            "evener-kernels",
        ]),
        &[],
    ),
    ("evener-c", Use(&["evener", "evener-machine", "evener-ring"]), RUNTIME_TESTS),
    (
        "evener-files",
        Use(&["evener", "evener-core", "evener-evp", "evener-fd", "evener-kernels", "evener-startup"]),
        RUNTIME_TESTS,
    ),
    // The package's Python is its only user.
    ("evener-python", Use(&["evener", "evener-c", "evener-fd", "evener-files", "evener-machine"]), &[]),
    ("evener-shards", Use(&[]), &[]),
    // A program by itself, which nothing builds on: the command starts it.
    (
        "evener-objects",
        Use(&["evener", "evener-fd", "evener-files", "evener-machine", "evener-shards"]),
        &["evener-testing"],
    ),
    ("evener-sim", Use(&["evener-core"]), &["evener-vectors"]),
    ("evener-wire", Use(&["evener-core"]), &[]),
    // Of drivers it names the emulated one only, which it controls; those of a core are handed in.
    (
        "evener-host",
        Use(&["evener", "evener-core", "evener-driver-emulated", "evener-ring", "evener-wire"]),
        // Its own client, under signals; other processes at its module.
        &[
            "evener-arbiter",
            "evener-testing",
            "evener-vectors",
            "evener-driver-libcrypto",
            "evener-driver-multibuffer",
            "evener-driver-virtio",
        ],
    ),
    ("evener-ossl-sys", Use(&[]), &[]),
    // Links libcrypto, which evener.so must not: it is loaded by one.
    ("evener-evp-sys", Use(&[]), &[]),
    ("evener-evp", Use(&["evener-evp-sys"]), &[]),
    // The plain method is the inner provider: no driver for libcrypto, and none that computes wrong on purpose.
    (
        "evener-provider",
        Use(&[
            "evener",
            "evener-arbiter",
            "evener-core",
            "evener-fd",
            "evener-kernels",
            "evener-ring",
            "evener-ossl-sys",
            "evener-driver-virtio",
            "evener-driver-kernel",
            "evener-driver-lanes",
            "evener-driver-multibuffer",
        ]),
        // A module is a host's in another process.
        &["evener-testing"],
    ),
    ("evener-cryptodev", Use(&["evener", "evener-core", "evener-driver-kernel", "evener-ring"]), &[]),
    ("evener-bench", UseAll, &[]),
    ("evener-decisions", Use(&[]), &["evener-core"]),
    ("evener-cli", UseAll, &["evener-testing"]),
    // What tests share stands above all that they test.
    (
        "evener-testing",
        Use(&[
            "evener",
            "evener-arbiter",
            "evener-core",
            "evener-driver-emulated",
            "evener-driver-libcrypto",
            "evener-driver-lanes",
            "evener-driver-multibuffer",
            "evener-fd",
            "evener-host",
            "evener-vectors",
        ]),
        &[],
    ),
    (
        "evener-conformance",
        Use(&[
            "evener",
            "evener-core",
            "evener-driver-emulated",
            "evener-driver-kernel",
            "evener-driver-libcrypto",
            "evener-testing",
        ]),
        &[
            "evener-cryptodev",
            "evener-driver-virtio",
            "evener-host",
            "evener-provider",
            "evener-testbed",
            "evener-wire",
        ],
    ),
    // The one build of the provider that has an emulated driver; nothing that is installed uses it.
    ("evener-provider-test", Use(&["evener-provider", "evener-core", "evener-driver-emulated"]), &[]),
    (
        "evener-conformance-openssl",
        Use(&[
            "evener-evp-sys",
            "evener-vectors",
            "evener-provider",
            "evener-provider-test",
            "evener-testbed",
        ]),
        // A host beside the programs, and what programs count.
        &["evener-testing", "evener"],
    ),
    ("evener-vectors", Use(&[]), &[]),
    ("evener-testbed", Use(&[]), &[]),
    ("xtask", Use(&["evener-testbed"]), &[]),
];

// The papers' tables are read by the simulator.
const DRIVER_TESTS: &[&str] = &["evener-testing", "evener-vectors", "evener-driver-libcrypto", "evener-sim"];
const RUNTIME_TESTS: &[&str] = &[
    "evener-testing",
    "evener-vectors",
    "evener-driver-libcrypto",
    "evener-driver-multibuffer",
    "evener-driver-emulated",
];

/// Fronts and checks, which nothing may build on; what tests share, which only tests may, and the checks that are nothing else.
const NOBODY_USES: &[&str] = &[
    "evener-cli",
    "evener-conformance",
    "evener-conformance-openssl",
    "evener-objects",
    "evener-python",
    "evener-testing",
    "xtask",
];

/// Each crate with what it may use, in words.
pub(super) fn rows() -> impl Iterator<Item = (&'static str, String)> {
    DIRECTIONS.iter().map(|(name, may, _)| (*name, in_words(may)))
}

fn in_words(may: &May) -> String {
    let short = |names: &[&'static str]| {
        let short: Vec<_> = names.iter().map(|name| name.strip_prefix("evener-").unwrap_or(name)).collect();
        short.join(", ")
    };
    match may {
        Use([]) => "none".to_owned(),
        Use(names) => short(names),
        UseAll => format!("all but {}", short(NOBODY_USES)),
    }
}

/// Findings for every edge that the table does not allow and every member without a row.
pub(super) fn check(packages: &[Package]) -> Vec<Finding> {
    packages.iter().flat_map(check_package).collect()
}

fn check_package(package: &Package) -> Vec<Finding> {
    let manifest = format!("{}/Cargo.toml", package.folder);
    let finding = |message: String| Finding::new(&manifest, 1, message);
    let Some((name, may, tests)) = DIRECTIONS.iter().find(|(name, ..)| *name == package.name) else {
        let message = format!("`{}` has no row in xtask/src/tidy/directions.rs", package.name);
        return vec![finding(message)];
    };
    let used = package.uses.iter().filter(|other| !allows(may, other));
    let used =
        used.map(|other| finding(format!("`{name}` may not use `{other}` (xtask/src/tidy/directions.rs)")));
    let tested =
        package.tests_use.iter().filter(|other| !allows(may, other) && !tests.contains(&other.as_str()));
    let tested = tested.map(|other| finding(format!("the tests of `{name}` may not use `{other}`")));
    used.chain(tested).collect()
}

fn allows(may: &May, other: &str) -> bool {
    match may {
        Use(list) => list.contains(&other),
        UseAll => !NOBODY_USES.contains(&other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn package(name: &str, uses: &[&str], tests_use: &[&str]) -> Package {
        let owned = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect();
        let (uses, tests_use) = (owned(uses), owned(tests_use));
        Package {
            name: name.into(),
            folder: "crates/x".into(),
            uses,
            tests_use,
            roots: Vec::new(),
            rooms: Vec::new(),
        }
    }

    #[test]
    fn the_core_may_not_use_the_runtime() {
        let found = check(&[package("evener-core", &["evener"], &[])]);
        assert_eq!(found.len(), 1);
        assert!(
            found[0].to_string().starts_with("crates/x/Cargo.toml:1: `evener-core` may not use `evener`")
        );
    }

    #[test]
    fn a_crate_without_a_row_is_found() {
        assert!(check(&[package("evener-new", &[], &[])])[0].message.contains("has no row"));
    }

    #[test]
    fn tests_may_use_more_than_the_crate_but_not_everything() {
        let driver = "evener-driver-libcrypto";
        assert!(check(&[package("evener", &[], &[driver])]).is_empty());
        assert_eq!(check(&[package("evener", &[driver], &[])]).len(), 1);
        assert_eq!(check(&[package("evener", &[], &["evener-cli"])]).len(), 1);
    }

    #[test]
    fn nothing_but_tests_uses_what_tests_share() {
        for name in ["evener", "evener-host", "evener-cli"] {
            assert!(check(&[package(name, &[], &["evener-testing"])]).is_empty());
            assert_eq!(check(&[package(name, &["evener-testing"], &[])]).len(), 1, "{name}");
        }
    }

    #[test]
    fn nobody_uses_the_command() {
        assert_eq!(check(&[package("evener-bench", &["evener-cli"], &[])]).len(), 1);
    }
}
