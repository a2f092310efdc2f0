//! Every number and every field against each `core_dispatch.h` that this machine has.

#![forbid(unsafe_code)]

use std::fmt::Write as _;
use std::mem::{offset_of, size_of};
use std::path::Path;
use std::process::Command;
use std::{env, fs};

use evener_ossl_sys as sys;
use evener_ossl_sys::number;

/// Folders that hold `openssl/core_dispatch.h` where a distribution, Node's headers or an own build put it.
fn header_folders() -> Vec<String> {
    let own = env::var("OPENSSL_INCLUDES").unwrap_or_default();
    let own = own.split(':').filter(|folder| !folder.is_empty());
    let usual = ["/usr/include", "/usr/local/include", "/usr/include/node"];
    let all = usual.into_iter().chain(own).map(str::to_owned);
    all.filter(|folder| Path::new(folder).join("openssl/core_dispatch.h").exists()).collect()
}

/// C text that compiles only where this crate and the header agree.
fn assertions() -> String {
    let mut c =
        String::from("#include <stddef.h>\n#include <openssl/core.h>\n#include <openssl/core_dispatch.h>\n");
    c += "#include <openssl/params.h>\n";
    for (symbol, value, since) in number::ALL {
        let missing = if *since == "3.0" { format!("#error no {symbol}\n") } else { String::new() };
        let line = format!("_Static_assert({symbol} == {value}, \"{symbol}\");");
        writeln!(c, "#ifdef {symbol}\n{line}\n#else\n{missing}#endif").expect("a String takes all");
    }
    let mut says = |text: String, value: usize| {
        writeln!(c, "_Static_assert({text} == {value}, \"{text}\");").expect("a String takes all");
    };
    macro_rules! layout {
        ($c:literal, $ours:ty { $($field:ident $name:literal),* }) => {
            says(format!("sizeof({})", $c), size_of::<$ours>());
            $(says(format!("offsetof({}, {})", $c, $name), offset_of!($ours, $field));)*
        };
    }
    layout!("OSSL_DISPATCH", sys::Dispatch { function_id "function_id", function "function" });
    layout!("OSSL_ALGORITHM", sys::Algorithm {
        names "algorithm_names", properties "property_definition", implementation "implementation",
        description "algorithm_description"
    });
    layout!("OSSL_PARAM", sys::Param {
        key "key", data_type "data_type", data "data", data_size "data_size", return_size "return_size"
    });
    says("OSSL_PARAM_INTEGER".into(), sys::PARAM_INTEGER as usize);
    says("OSSL_PARAM_UNSIGNED_INTEGER".into(), sys::PARAM_UNSIGNED_INTEGER as usize);
    says("OSSL_PARAM_UTF8_STRING".into(), sys::PARAM_UTF8_STRING as usize);
    says("OSSL_PARAM_OCTET_STRING".into(), sys::PARAM_OCTET_STRING as usize);
    says("OSSL_PARAM_UTF8_PTR".into(), sys::PARAM_UTF8_PTR as usize);
    says("OSSL_PARAM_OCTET_PTR".into(), sys::PARAM_OCTET_PTR as usize);
    c += "_Static_assert(OSSL_PARAM_UNMODIFIED == (size_t)-1, \"OSSL_PARAM_UNMODIFIED\");\n";
    c
}

/// Compiles `text` against the header in `folder`; what the compiler said where it refuses.
fn compile(text: &str, folder: &str) -> Result<(), String> {
    let place = tempfile::tempdir().expect("a temporary folder");
    let file = place.path().join("abi.c");
    fs::write(&file, text).expect("space for a file");
    let output = Command::new("cc")
        .args(["-std=c11", "-fsyntax-only", "-I", folder])
        .arg(file)
        .output()
        .expect("cc was there");
    if output.status.success() { Ok(()) } else { Err(String::from_utf8_lossy(&output.stderr).into_owned()) }
}

#[test]
fn every_number_and_field_is_as_the_installed_headers_say() {
    let folders = header_folders();
    if folders.is_empty() || Command::new("cc").arg("--version").output().is_err() {
        println!("skipped: no core_dispatch.h or no C compiler (Debian: libssl-dev, gcc)");
        return;
    }
    for folder in folders {
        compile(&assertions(), &folder).unwrap_or_else(|said| panic!("{folder}: {said}"));
        println!("{folder}: {} numbers agree", number::ALL.len());
        let wrong = assertions().replace("OSSL_FUNC_CIPHER_UPDATE == 4", "OSSL_FUNC_CIPHER_UPDATE == 5");
        assert!(compile(&wrong, &folder).is_err(), "{folder}: an assertion that is false compiles");
    }
}
