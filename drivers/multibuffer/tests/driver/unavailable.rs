//! Machines without the library, and with one that Evener does not know.

use std::path::Path;
use std::process::Command;
use std::{env, fs, process};

use evener_driver_multibuffer::{BareLoop, Multibuffer, Unavailable};

/// What comes of loading a library that says it is of `version` and has `functions`, which must not be called.
/// Nothing where there is no C compiler.
fn load_impostor(name: &str, version: &str, functions: &[&str]) -> Option<Option<Unavailable>> {
    let place = env::temp_dir().join(format!("evener-{name}-{}", process::id()));
    fs::create_dir_all(&place).unwrap();
    let (source, library) = (place.join("impostor.c"), place.join("libIPSec_MB.so.1"));
    let empty = functions.iter().map(|function| format!("void {function}(void) {{ __builtin_trap(); }}\n"));
    let versions = format!(
        "unsigned imb_get_version(void) {{ return {version}; }}\n\
         const char *imb_get_version_str(void) {{ return \"{version}\"; }}\n"
    );
    fs::write(&source, versions + &empty.collect::<String>()).unwrap();
    let compiled = Command::new("cc").args(["-shared", "-fPIC", "-o"]).arg(&library).arg(&source).status();
    let loaded =
        compiled.is_ok_and(|status| status.success()).then(|| Multibuffer::load_from(&library).err());
    fs::remove_dir_all(&place).unwrap();
    loaded
}

fn skipped() {
    println!("skipped: no C compiler");
}

const REST: [&str; 4] =
    ["imb_get_feature_flags", "imb_get_mb_mgr_size", "imb_set_pointers_mb_mgr", "init_mb_mgr_auto"];

#[test]
fn a_library_that_is_not_there_is_absent_and_says_so() {
    let unavailable = Multibuffer::load_from(Path::new("/nonexistent/libIPSec_MB.so.1")).err().unwrap();
    assert!(
        matches!(unavailable, Unavailable::NotFound { .. } | Unavailable::OtherProcessor),
        "{unavailable:?}"
    );
    if cfg!(target_arch = "x86_64") {
        assert!(unavailable.to_string().contains("libipsec-mb cannot be loaded"), "{unavailable}");
    }
}

#[test]
fn a_path_with_a_zero_byte_is_absent() {
    let unavailable = Multibuffer::load_from(Path::new("lib\0.so")).err().unwrap();
    assert!(matches!(unavailable, Unavailable::NotFound { .. }), "{unavailable:?}");
}

#[test]
#[cfg(target_arch = "x86_64")]
fn a_release_whose_structures_are_not_known_is_absent_and_never_called() {
    for version in ["0x10200", "0x10301", "0x20100", "0x990000"] {
        let Some(unavailable) = load_impostor("unknown", version, &REST) else { return skipped() };
        assert_eq!(unavailable, Some(Unavailable::UnknownVersion { version: version.to_owned() }));
    }
}

#[test]
#[cfg(target_arch = "x86_64")]
fn a_library_that_lacks_a_function_is_absent() {
    let Some(unavailable) = load_impostor("incomplete", "0x10300", &REST[1..]) else { return skipped() };
    assert_eq!(unavailable, Some(Unavailable::Incomplete));
}

#[test]
#[cfg(not(target_arch = "x86_64"))]
fn another_processor_has_no_library() {
    assert_eq!(Multibuffer::load().err(), Some(Unavailable::OtherProcessor));
}

#[test]
fn driver_and_bare_loop_agree_on_whether_there_is_a_library() {
    assert_eq!(Multibuffer::load().err(), BareLoop::load(&[0; 16]).err());
}
