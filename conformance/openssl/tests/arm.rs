//! OpenSSL's own tests of its algorithms on ARM's processors, of 32 bits and of 64, in the test bed's guests.
//!
//! Path: the provider and the test that runs `evp_test` are built for that processor, `evp_test` by a C compiler for
//! it -> both and the data files lie in the guest where they lie here -> that test runs there.

use std::path::{Path, PathBuf};
use std::time::Duration;
use std::{env, fs};

use evener_conformance_openssl::evp_test::{compile, data_files};
use evener_conformance_openssl::{fetched, openssl_sources, print_line, skipped};
use evener_testbed::{Builder, Guest, Profile, Toolchain, build_tests};

/// An emulated processor takes up to a minute for what a real one does in a second, and on a busy host several.
const GUEST_LIFE: Duration = Duration::from_secs(4_000);

#[test]
#[ignore = "builds for another processor, and runs for minutes under emulation"]
fn evp_test_says_the_same_with_evener_as_without_on_32_bit_arm() {
    says_the_same(Profile::Armv7, "arm-linux-gnueabihf");
}

#[test]
#[ignore = "builds for another processor, and runs for minutes under emulation"]
fn evp_test_says_the_same_with_evener_as_without_on_aarch64() {
    says_the_same(Profile::Aarch64, "aarch64-linux-gnu");
}

/// `gnu` names the folder in which Debian's libcrypto for it looks for its modules.
fn says_the_same(profile: Profile, gnu: &str) {
    let toolchain = match Toolchain::find(profile) {
        Ok(toolchain) => toolchain,
        Err(reason) => return skipped(&reason.to_string()),
    };
    let Some((sources, version)) = openssl_sources() else {
        return skipped("OpenSSL's sources are not there (`./x prepare` fetches them)");
    };
    let words = ["-p", "evener-conformance-openssl", "--test", "evp_test"];
    let built = build_tests(toolchain.cargo(env!("CARGO")), &words).expect("the runner builds");
    let runner = &built.first().expect("it is one").path;
    let folder = tempfile::tempdir().expect("there is a folder for temporary files");
    let program = folder.path().join("evp_test");
    compile(toolchain.cc().as_os_str(), &sources, &program).expect("evp_test builds");

    let builder = Guest::builder().profile(profile).limit(GUEST_LIFE).program(runner);
    let builder = with_modules(builder, &toolchain, &format!("/usr/lib/{gnu}/ossl-modules/legacy.so"));
    let builder = with_sources(builder, &sources);
    let place = fetched("openssl").expect("the sources lie there").join(format!("evp_test-{version}"));
    let Some(mut guest) = copied(builder, &program, &place).boot_or_skip() else { return };
    let outcome = guest.run(&format!("{} --nocapture", name(runner))).expect("the guest answers");
    let output = outcome.expect_success();
    print_line(output);
    assert!(output.contains("requests routed") && !output.contains("skipped: "), "{output}");
    guest.shut_down().expect("the guest ends");
}

/// Adds Evener's modules, beside the runner, and OpenSSL's own for old algorithms.
fn with_modules(builder: Builder, toolchain: &Toolchain, legacy: &str) -> Builder {
    let built = toolchain.built().join("deps");
    let modules = ["libevener_provider.so", "libevener_provider_test.so"];
    let builder = modules.iter().fold(builder, |builder, module| {
        copied(builder, &built.join(module), &Path::new("/payload").join(module))
    });
    copied(builder, &toolchain.root().join(legacy.trim_start_matches('/')), Path::new(legacy))
}

/// Adds the data files, and what the runner knows sources by.
fn with_sources(builder: Builder, sources: &Path) -> Builder {
    // Its own paths lead through the folder of this crate.
    let builder = builder.file(concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml"), "");
    let data = data_files(sources).expect("the data files lie beside the program");
    let program = sources.join("test/evp_test.c");
    data.iter().chain([&program]).fold(builder, |builder, path: &PathBuf| copied(builder, path, path))
}

fn copied(builder: Builder, source: &Path, place: &Path) -> Builder {
    builder.file(&place.to_string_lossy(), fs::read(source).expect("it was built or fetched"))
}

fn name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}
