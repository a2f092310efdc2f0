//! `evener doctor`: each trap is planted once and named; where nothing is wrong, Evener's own module serves.
#![allow(clippy::unwrap_used, reason = "a test")]

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;

use crate::common::activity::{Guarded, write_statistics};
use crate::common::{self, Place, Ran, misfits, there_is};
use evener::core::Direction;
use evener::core::counts::{Count, Kind, Row};
use rustix::fs::{CWD, FileType, Mode, mknodat};
use serde_json::Value;

/// A place with Evener's module, as it is built beside these tests.
fn place() -> Place {
    let place = Place::new();
    place.module("modules/evener.so");
    place
}

/// A configuration in which all is well.
fn good(place: &Place) -> String {
    place.write("base.cnf", "HOME = .\n");
    let module = ["--base", "base.cnf", "--file", "modules/evener.so"];
    place.evener().args(["provider", "config"]).args(module).run().succeeded().stdout_text().to_owned()
}

fn doctor(place: &Place, config: &str, arguments: &[&str]) -> Ran {
    let path = place.write("openssl.cnf", config);
    let run = place.evener().env("OPENSSL_CONF", path).env("EVENER_STATISTICS_DIR", place.join("stats"));
    run.arg("doctor").args(arguments).run()
}

/// The answer for the command openssl itself, which fits its schema. Of that command it is known that it can make library
/// contexts of its own.
fn answer(place: &Place, config: &str) -> Value {
    let openssl = which("openssl");
    let ran = doctor(place, config, &["--json", "--program", openssl.to_str().unwrap()]);
    let value: Value = serde_json::from_slice(ran.stdout()).unwrap();
    assert_eq!(misfits("doctor.schema.json", &value), [""; 0]);
    let is_well = value["findings"].as_array().unwrap().iter().all(|finding| finding["certain"] == false);
    assert_eq!(ran.code(), Some(i32::from(!is_well)), "{value:#}");
    value
}

/// What is in the way for certain.
fn traps(value: &Value) -> Vec<&str> {
    let certain = value["findings"].as_array().unwrap().iter().filter(|finding| finding["certain"] == true);
    certain.map(|finding| finding["trap"].as_str().unwrap()).collect()
}

fn which(program: &str) -> PathBuf {
    let path = std::env::var_os("PATH").unwrap();
    std::env::split_paths(&path).map(|folder| folder.join(program)).find(|file| file.is_file()).unwrap()
}

#[test]
fn what_doctor_tries_counts_as_no_programs_requests() {
    if !there_is("python3") {
        return;
    }
    let place = place();
    let text = doctor(&place, &good(&place), &[]).stdout_text().to_owned();
    assert!(text.contains("Python ssl"), "{text}");
    let counted = fs::read_dir(place.join("stats")).map_or(0, Iterator::count);
    assert_eq!(counted, 0, "{text}");
}

#[test]
fn the_forecast_is_of_usual_requests_until_the_program_has_made_its_own() {
    let place = place();
    let config = good(&place);
    let forecast = |config: &str| answer(&place, config)["forecast"].clone();
    let usual = forecast(&config);
    assert_eq!(usual["processes"], 0);
    let rows = usual["requests"].as_array().unwrap();
    assert!(
        rows.iter().any(|row| row["algorithm"] == "AES-256-GCM") && rows.iter().all(|row| row["count"] == 0)
    );
    for row in rows {
        assert!(row["openssl_ns"].as_u64().unwrap() > 0, "{row}");
        // One core, one code in the other's place: what is left is no hundredth and no hundredfold.
        for left in ["by_kernel", "together"].iter().filter_map(|way| row[way].as_f64()) {
            assert!((0.01..100.0).contains(&left), "{row}");
        }
    }
    // What the fresh process says, asked for itself.
    let openssl = which("openssl");
    let itself = doctor(&place, &config, &["--forecast", openssl.to_str().unwrap()]).succeeded();
    let itself: Value = serde_json::from_slice(itself.stdout()).unwrap();
    assert_eq!(itself["requests"].as_array().unwrap().len(), rows.len());
    let runs = Guarded::sleeper();
    let [ctr, cbc] =
        ["AES-192-CTR", "AES-256-CBC"].map(|name| Row::of(Kind::named(name), Direction::Encrypt, 4_000));
    let counts = [
        (ctr, Count::Kernel, 10),
        (ctr, Count::Bytes, 40_000),
        (cbc, Count::Direct, 2),
        (cbc, Count::Bytes, 8_002),
    ];
    write_statistics(&place, runs.id(), b"openssl", &counts);
    let own = forecast(&config);
    assert_eq!(own["processes"], 1);
    let rows = own["requests"].as_array().unwrap();
    let facts: Vec<_> = rows.iter().map(|row| (&row["algorithm"], &row["bytes"], &row["count"])).collect();
    // The most bytes first; CBC in whole blocks.
    assert_eq!(
        facts,
        [
            (&"AES-192-CTR".into(), &4_000.into(), &10.into()),
            (&"AES-256-CBC".into(), &4_016.into(), &2.into())
        ]
    );
    assert!(
        rows[1]["together"].is_number() && rows[1]["by_kernel"].is_null(),
        "no kernel encrypts one message of CBC"
    );
}

/// OpenSSL's own command judges: it says which providers it loaded.
#[test]
fn where_all_is_well_evener_serves_and_openssl_says_so_too() {
    let place = place();
    let value = answer(&place, &good(&place));
    assert_eq!(traps(&value), [""; 0], "{value:#}");
    let algorithms = value["openssl"]["algorithms"].as_array().unwrap();
    let by_evener = algorithms.iter().filter(|one| one["by"] == "evener").count();
    assert!(by_evener >= 14, "{by_evener}");
    assert!(algorithms.iter().all(|one| one["by"].is_string()));
    let report = place
        .program("openssl")
        .args(["list", "-providers"])
        .env("OPENSSL_CONF", place.join("openssl.cnf"))
        .run();
    let report = report.succeeded();
    assert!(report.stdout_text().contains("\n  evener\n") && report.stdout_text().contains("\n  default\n"));
}

#[test]
fn each_trap_of_a_configuration_is_named_with_its_cure() {
    let place = place();
    let good = good(&place);
    let module = place.join("modules/evener.so").display().to_string();
    fs::copy(place.join("modules/evener.so"), place.join("modules/other.so")).unwrap();
    let without = |line: &str| good.replace(&format!("{line}\n"), "");
    let order = good.replace(
        "default = evener_default\nevener = evener_provider",
        "evener = evener_provider\ndefault = evener_default",
    );
    let cases = [
        ("default-missing", without("default = evener_default")),
        ("default-missing", good.replace("[evener_default]\nactivate = 1", "[evener_default]")),
        ("wrong-order", order),
        ("no-alg-section", without("alg_section = evener_algorithms")),
        ("no-alg-section", without("default_properties = ?provider=evener,?evener.serves=yes")),
        ("mandatory", good.replace("?provider=evener", "provider=evener")),
        ("no-random-section", without("random = evener_random")),
        ("module-missing", good.replace(&module, "/gone/evener.so")),
        ("module-name", good.replace(&module, &module.replace("evener.so", "other.so"))),
        ("not-activated", good.replace("evener.so\nactivate = 1", "evener.so")),
        ("not-configured", without("evener = evener_provider")),
        ("not-configured", "HOME = .\n".to_owned()),
        ("fips", good.replace("?provider=evener", "fips=yes,?provider=evener")),
    ];
    for (trap, config) in cases {
        assert_ne!(config, good, "{trap} was not planted");
        let value = answer(&place, &config);
        assert!(traps(&value).contains(&trap), "{trap} in {value:#}");
        let finding = &value["findings"].as_array().unwrap().iter().find(|one| one["trap"] == trap).unwrap();
        assert!(!finding["cure"].as_str().unwrap().is_empty());
        let text = doctor(&place, &config, &["--program", which("openssl").to_str().unwrap()]);
        let lines = text.stdout_text().lines().filter(|line| line.starts_with(&format!("{trap}: "))).count();
        assert_eq!(lines, 1, "{}", text.stdout_text());
    }
}

#[test]
fn each_value_that_the_provider_complains_of_is_a_finding() {
    let place = place();
    let good = good(&place);
    let config = good.replace("combine = auto", "combine = auto\nkernels = bad\nthreads = 99\nspilt = auto");
    let value = answer(&place, &config);
    assert_eq!(traps(&value), ["setting"; 3], "{value:#}");
    let findings = value["findings"].as_array().unwrap();
    for words in
        ["kernels = bad: wants ", "threads = 99: wants auto or a number up to 33", "spilt: unknown key"]
    {
        let named = |finding: &&Value| finding["fact"].as_str().unwrap().contains(words);
        assert_eq!(findings.iter().filter(named).count(), 1, "{words} in {findings:#?}");
    }
}

/// Programs that ask with a `provider` of their own are few, so this one may be in the way and need not.
#[test]
fn a_configuration_of_before_that_leaves_some_programs_to_others_is_told_the_line_that_serves_them() {
    let place = place();
    let old = good(&place).replace(",?evener.serves=yes", "");
    let value = answer(&place, &old);
    assert_eq!(traps(&value), [""; 0], "{value:#}");
    let finding = value["findings"].as_array().unwrap().iter().find(|one| one["trap"] == "not-for-all");
    let cure = finding.unwrap()["cure"].as_str().unwrap();
    assert!(cure.contains("default_properties = ?provider=evener,?evener.serves=yes"), "{cure}");
    // With what the cure says, nothing is left of it.
    let mended = old.replace("default_properties = ?provider=evener", cure.split('`').nth(1).unwrap());
    let value = answer(&place, &mended);
    assert!(
        !value["findings"].as_array().unwrap().iter().any(|one| one["trap"] == "not-for-all"),
        "{value:#}"
    );
}

#[test]
fn a_module_that_openssl_refuses_and_a_configuration_that_is_not_there_are_told_apart() {
    let place = place();
    let good = good(&place);
    place.write("modules/evener.so", "no module at all");
    assert_eq!(traps(&answer(&place, &good)), ["not-loaded"]);
    let old = good.replace(",?evener.serves=yes", "");
    assert_eq!(traps(&answer(&place, &old)), ["not-loaded"], "what only may be in the way hides nothing");
    let ran = place
        .evener()
        .env("OPENSSL_CONF", place.join("gone.cnf"))
        .args(["doctor", "--json"])
        .run()
        .ended_with(1);
    let value: Value = serde_json::from_slice(ran.stdout()).unwrap();
    assert_eq!(traps(&value)[0], "no-configuration");
}

#[test]
fn statistics_that_cannot_be_kept_are_named() {
    let place = place();
    let path = place.write("openssl.cnf", good(&place));
    place.write("stats", "no directory");
    let run = place.evener().env("OPENSSL_CONF", path).env("EVENER_STATISTICS_DIR", place.join("stats"));
    let openssl = which("openssl");
    let ran = run.args(["doctor", "--program", openssl.to_str().unwrap()]).run().ended_with(1);
    assert!(ran.stdout_text().contains("\nstatistics: "));
}

#[test]
fn a_fresh_process_answers_for_itself() {
    let place = place();
    let ran = doctor(&place, &good(&place), &["--probe"]).succeeded();
    let value: Value = serde_json::from_slice(ran.stdout()).unwrap();
    assert_eq!((&value["evener_active"], &value["default_active"]), (&true.into(), &true.into()));
    doctor(&place, "", &["--probe", "--json"]).ended_with(2).saying("--probe");
}

/// Compiles a program from a few lines of C.
fn compiled(place: &Place, name: &str, source: &str, libraries: &[&str]) -> PathBuf {
    let file = place.write(format!("{name}.c"), source);
    place
        .program("cc")
        .args(["-w", "-Wl,--no-as-needed", "-o", name])
        .arg(file)
        .args(libraries)
        .run()
        .succeeded();
    place.join(name)
}

#[test]
fn each_trap_of_a_program_is_named() {
    let place = place();
    let good = good(&place);
    let look = |path: &PathBuf| {
        let ran = doctor(&place, &good, &["--json", "--program", path.to_str().unwrap()]);
        let value: Value = serde_json::from_slice(ran.stdout()).unwrap();
        assert_eq!(misfits("doctor.schema.json", &value), [""; 0]);
        let found: Vec<_> =
            value["findings"].as_array().unwrap().iter().map(|one| one["trap"].as_str().unwrap()).collect();
        (value["program"]["crypto"].as_str().unwrap().to_owned(), found.join(" "), ran.code())
    };
    let calls = |call: &str| format!("void {call}(); int main(void) {{ {call}(); }}");
    for (call, trap) in [
        ("OSSL_LIB_CTX_new", "own-context"),
        ("EVP_set_default_properties", "own-properties"),
        ("AES_cbc_encrypt", "low-level"),
    ] {
        let (crypto, traps, code) = look(&compiled(&place, call, &calls(call), &["-lcrypto"]));
        assert!(crypto.contains("libcrypto.so.3"), "{crypto}");
        assert_eq!((&*traps, code), (trap, Some(0)), "only perhaps in the way");
    }
    let plain = compiled(&place, "plain", &calls("EVP_MD_CTX_new"), &["-lcrypto"]);
    assert_eq!(look(&plain).1, "");
    fs::set_permissions(&plain, fs::Permissions::from_mode(0o4755)).unwrap();
    assert_eq!((look(&plain).1.as_str(), look(&plain).2), ("at-secure", Some(1)));
    let text = |text: &str| {
        format!("const char *volatile kept = \"{text}\"; int main(void) {{ return kept == 0; }}")
    };
    for (name, mark) in
        [("BoringSSL", "in BoringSSL style"), ("AWS-LC", "AWS-LC 1"), ("rustls", "/rustls-0.23/src")]
    {
        let (crypto, traps, code) = look(&compiled(&place, name, &text(mark), &[]));
        assert_eq!((&*crypto, &*traps, code), (&*format!("uses {name}"), "never-sees-us", Some(1)));
    }
    // What such a program says of others matters nothing beside what it is linked to.
    for library in ["-lcrypto", "-lssl"] {
        let (crypto, traps, code) =
            look(&compiled(&place, "linked", &text("works with BoringSSL, AWS-LC and rustls"), &[library]));
        assert!(crypto.contains("libcrypto.so.3"), "{library}: {crypto}");
        assert_eq!((&*traps, code), ("", Some(0)), "{library}");
    }
    let go = "__attribute__((section(\".go.buildinfo\"))) char info[32] = \"x\"; int main(void) { return info[0]; }";
    assert_eq!(look(&compiled(&place, "go", go, &[])).0, "uses Go");
    let inside = look(&compiled(&place, "inside", &text("OPENSSLDIR: /etc"), &[]));
    assert_eq!((&*inside.0, &*inside.1), ("has OpenSSL inside it", ""));
    assert_eq!(look(&compiled(&place, "none", "int main(void) { return 0; }", &[])).1, "no-openssl");
}

#[test]
fn what_is_no_program_is_refused_with_one_line() {
    let place = place();
    place.write("text", "#!/bin/sh\n");
    // No process writes to it.
    mknodat(CWD, place.join("pipe"), FileType::Fifo, Mode::RWXU, 0).unwrap();
    let refused =
        [("text", "ELF"), ("gone", "cannot find"), ("modules", "cannot read"), ("pipe", "no regular file")];
    for (path, words) in refused.into_iter().chain([("/dev/zero", "no regular file")]) {
        place.evener().args(["doctor", "--program", path]).run().ended_with(2).saying(words);
    }
}

/// The interpreters are the machine's own; where they are missing there is nothing to ask.
#[test]
fn python_is_asked_by_a_process_of_its_own() {
    let place = place();
    if !there_is("python3") {
        return common::skipped("python3 is not installed");
    }
    let loaded = |config: &str| {
        let ran = doctor(&place, config, &["--json"]);
        let value: Value = serde_json::from_slice(ran.stdout()).unwrap();
        assert_eq!(misfits("doctor.schema.json", &value), [""; 0]);
        let runtimes = value["runtimes"].as_array().unwrap().clone();
        let python = runtimes.into_iter().find(|one| one["name"] == "Python ssl").unwrap();
        python["evener_loaded"].as_bool().unwrap()
    };
    assert!(loaded(&good(&place)));
    assert!(!loaded("HOME = .\n"));
}

/// Files that are planted under a client's name judge: their libraries are what `objdump` says of them.
#[test]
fn the_usual_clients_are_told_by_whose_tls_they_have() {
    let place = place();
    let ran = doctor(&place, &good(&place), &["--json", "--program"]);
    let value: Value = serde_json::from_slice(ran.stdout()).unwrap();
    assert_eq!(misfits("doctor.schema.json", &value), [""; 0]);
    let clients = value["clients"].as_array().unwrap();
    let named = |name: &str| clients.iter().find(|client| client["name"] == name);
    for (name, program) in [("curl", "curl"), ("wget", "wget")] {
        let Some(client) = named(name) else {
            common::skipped(&format!("{program} is not installed"));
            continue;
        };
        // Another program judges: what the loader would load.
        let loaded = place.program("ldd").args([client["file"].as_str().unwrap()]).run().succeeded();
        let has_openssl = loaded.stdout_text().contains("libssl.so.3");
        if !loaded.stdout_text().contains("libgnutls") || !has_openssl {
            assert_eq!(client["can_serve"], has_openssl, "{client:#}");
        }
    }
    let by = [("Chromium", "BoringSSL"), ("Firefox", "NSS"), ("QtWebKit", "OpenSSL"), ("w3m", "OpenSSL")];
    for (name, library) in by {
        let Some(client) = named(name) else { continue };
        assert!(client["tls_library"].as_str().unwrap().starts_with(library), "{client:#}");
        assert_eq!(client["can_serve"], library == "OpenSSL");
    }
    let text = doctor(&place, &good(&place), &["--program"]);
    assert_eq!(text.stdout_text().matches(": TLS by ").count(), clients.len());
}

#[test]
fn a_browser_that_is_a_script_is_read_behind_it() {
    let place = place();
    if !there_is("chromium") {
        return common::skipped("chromium is not installed");
    }
    let ran = doctor(&place, &good(&place), &["--json", "--program", which("chromium").to_str().unwrap()]);
    let value: Value = serde_json::from_slice(ran.stdout()).unwrap();
    assert_eq!(value["program"]["tls_library"], "BoringSSL");
    assert_eq!(traps(&value), ["never-sees-us"]);
}

/// A system with an engine, to which its Linux 7.3 lets no program.
fn shut_engine(place: &Place) -> PathBuf {
    let files = [
        ("proc/sys/kernel/osrelease", "7.3.1\n"),
        ("proc/sys/crypto/af_alg_restrict", "1\n"),
        (
            "proc/crypto",
            "name : cbc(aes)\ndriver : cbc-aes-omap\ninternal : no\ntype : skcipher\nasync : yes\n\n\
             name : ctr(aes)\ndriver : ctr-aes-omap\ninternal : no\ntype : skcipher\nasync : yes\n\n",
        ),
    ];
    for (name, text) in files {
        let path = place.join("system").join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    place.join("system")
}

#[test]
fn an_engine_that_no_program_reaches_is_one_finding_with_its_cure_and_fails_nothing() {
    let place = place();
    let (root, openssl, config) = (shut_engine(&place), which("openssl"), good(&place));
    let options = ["--program", openssl.to_str().unwrap(), "--system-root", root.to_str().unwrap()];
    let ran = doctor(&place, &config, &[&options[..], &["--json"]].concat());
    assert_eq!(ran.code(), Some(0), "what no program asked for fails nothing");
    let value: Value = serde_json::from_slice(ran.stdout()).unwrap();
    assert_eq!(misfits("doctor.schema.json", &value), [""; 0]);
    let findings = value["findings"].as_array().unwrap();
    let shut: Vec<&Value> = findings.iter().filter(|finding| finding["trap"] == "engine-shut").collect();
    assert_eq!(shut.len(), 1, "{findings:#?}");
    let fact = shut[0]["fact"].as_str().unwrap();
    assert!(fact.starts_with("afalg:cbc-aes-omap, afalg:ctr-aes-omap cannot be used: "), "{fact}");
    assert!(fact.contains("af_alg_restrict is 1") && fact.contains("7.3.1"), "{fact}");
    let kinds: Vec<&str> = value["device_paths"].as_array().unwrap()[..3]
        .iter()
        .map(|path| path["obstacle"]["kind"].as_str().unwrap())
        .collect();
    assert_eq!(kinds, ["restriction"; 3]);
    let text = doctor(&place, &config, &options).stdout_text().to_owned();
    assert!(text.contains("\nengine-shut (perhaps): afalg:cbc-aes-omap, "), "{text}");
    assert!(text.contains("\n  cure: build cryptodev-linux for this kernel"), "{text}");
}

#[test]
fn a_module_that_the_configuration_names_and_no_way_leads_to_is_named_with_the_way_s_cure() {
    let place = place();
    let root = shut_engine(&place);
    let config = good(&place).replace("combine = auto", "combine = auto\nmodules = afalg:cbc-aes-omap");
    let ran = doctor(&place, &config, &["--json", "--system-root", root.to_str().unwrap()]);
    let value: Value = serde_json::from_slice(ran.stdout()).unwrap();
    let findings = value["findings"].as_array().unwrap();
    let closed = findings.iter().find(|finding| finding["trap"] == "module-closed").unwrap();
    let cure = closed["cure"].as_str().unwrap();
    assert!(cure.starts_with("build cryptodev-linux") && cure.contains("since 7.2"), "{cure}");
}
