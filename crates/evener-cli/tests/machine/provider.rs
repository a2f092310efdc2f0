//! `evener provider`: what it writes is what OpenSSL reads, nothing of the system's is lost, and no other program's file is touched.
#![allow(clippy::unwrap_used, reason = "a test")]

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};

use crate::common::{Place, Ran, files, tree};

/// A place with the module.
fn place() -> Place {
    let place = Place::new();
    place.module("modules/evener.so");
    place
}

/// The configuration that the command prints over `base`.
fn config(place: &Place, base: &str) -> String {
    place.write("base.cnf", base);
    let run =
        place.evener().args(["provider", "config", "--base", "base.cnf", "--file", "modules/evener.so"]);
    run.run().succeeded().stdout_text().to_owned()
}

/// What OpenSSL itself says under that configuration, with one of its own modules in evener's place.
fn openssl(place: &Place, config: &str, arguments: &[&str]) -> String {
    let module = place.join("modules/evener.so").display().to_string();
    let config =
        config.replace(&format!("module = {module}\n"), "").replace("identity = evener", "identity = legacy");
    let path = place.write("ours.cnf", config);
    let ran = place.program("openssl").args(arguments).env("OPENSSL_CONF", path).run().succeeded();
    ran.stdout_text().to_owned()
}

fn names_of_providers(output: &str) -> Vec<&str> {
    let lines = output.lines().filter(|line| line.starts_with("  ") && !line.starts_with("   "));
    lines.map(str::trim).collect()
}

const DEBIAN: &str = "HOME = .\nopenssl_conf = openssl_init\n[openssl_init]\nproviders = provider_sect\nssl_conf = ssl_sect\n\
                      [provider_sect]\ndefault = default_sect\n[default_sect]\n\
                      [ssl_sect]\nsystem_default = system_default_sect\n\
                      [system_default_sect]\nMinProtocol = TLSv1.2\nCipherString = AES128-SHA\n";

#[test]
fn openssl_loads_default_and_evener_whatever_the_system_says_already() {
    let place = place();
    let bare = "HOME = .\n";
    let debian_13 = "openssl_conf = default_conf\n[default_conf]\nalg_section = a\nrandom = r\n[a]\ndefault_properties = ?fips=no\n[r]\nseed = OS\n";
    for base in ["", bare, DEBIAN, debian_13] {
        let text = config(&place, base);
        let output = openssl(&place, &text, &["list", "-providers"]);
        let mut names = names_of_providers(&output);
        names.sort_unstable();
        assert_eq!(names, ["default", "legacy"], "{base}");
    }
    let text = config(&place, debian_13);
    assert!(text.contains("\ndefault_properties = ?fips=no,?provider=evener,?evener.serves=yes\n"), "{text}");
}

#[test]
fn protocol_and_cipher_settings_of_the_system_still_hold() {
    let place = place();
    let ciphers = |text: &str| openssl(&place, text, &["ciphers", "-s", "-tls1_2"]);
    let with = ciphers(&config(&place, DEBIAN));
    let without = ciphers(&config(&place, "HOME = .\n"));
    assert_eq!((with.trim(), without.contains(':')), ("AES128-SHA", true));
}

#[test]
fn crypto_modules_are_named_in_eveners_section_and_only_real_ones() {
    let place = place();
    place.write("base.cnf", "HOME = .\n");
    let config = |name: &str| {
        let run = place.evener().args(["provider", "config", "--base", "base.cnf", "--module", name]);
        run.args(["--module", "hosted:/run/evener.sock"]).run()
    };
    let text = config("afalg:virtio_crypto_aes_cbc").succeeded().stdout_text().to_owned();
    let (_, section) = text.split_once("[evener_provider]\n").unwrap();
    let section = section.split("\n\n").next().unwrap();
    assert!(section.ends_with("modules = afalg:virtio_crypto_aes_cbc hosted:/run/evener.sock"), "{text}");
    for wrong in ["emulated:am3358", "qat", "hosted:/run/a b", "hosted:/run/$USER"] {
        assert_ne!(config(wrong).code(), Some(0), "{wrong}");
    }
}

#[test]
fn providers_that_the_system_loads_stay() {
    let place = place();
    let base = "openssl_conf = i\n[i]\nproviders = p\n[p]\nevener = old\nnull = n\ndefault = d\n[n]\nactivate = 1\n[d]\n[old]\nactivate = 0\n";
    let output = openssl(&place, &config(&place, base), &["list", "-providers"]);
    let mut names = names_of_providers(&output);
    names.sort_unstable();
    assert_eq!(names, ["default", "legacy", "null"]);
}

#[test]
fn the_default_provider_stands_before_evener_and_the_machines_own_paths_are_named() {
    let place = Place::new();
    let text = place.evener().args(["provider", "config"]).run().succeeded().stdout_text().to_owned();
    let output = |option: &str| {
        let ran = place.program("openssl").args(["version", option]).run().succeeded();
        ran.stdout_text().split('"').nth(1).unwrap().to_owned()
    };
    assert!(text.contains(&format!("\nmodule = {}/evener.so\n", output("-m"))), "{text}");
    assert!(text.contains(&format!("\n.include {}/openssl.cnf\n", output("-d"))), "{text}");
    let at = |line: &str| text.find(line).unwrap_or_else(|| unreachable!("{line} is not in {text}"));
    assert!(at("\ndefault = ") < at("\nevener = "));
    for line in ["\nnodejs_conf = ", "\nalg_section = ", "\nrandom = ", "\nproperties = provider=default"] {
        at(line);
    }
}

#[test]
fn a_system_under_fips_and_paths_that_openssl_cannot_read_are_refused() {
    let place = place();
    let refused = |base: &str, words: &str| {
        place.write("base.cnf", base);
        let run = place.evener().args(["provider", "config", "--base", "base.cnf", "--file", "m/evener.so"]);
        run.run().ended_with(2).saying(words);
    };
    let requires = |properties: &str| {
        format!("openssl_conf = i\n[i]\nalg_section = a\n[a]\ndefault_properties = {properties}\n")
    };
    refused(&requires("fips=yes"), "Evener stands aside");
    refused(&requires("?provider=oqs"), "provider=oqs");
    place
        .evener()
        .args(["provider", "config", "--file", "a$b/evener.so"])
        .run()
        .ended_with(2)
        .saying("cannot hold");
    place
        .evener()
        .args(["provider", "config", "--base", "modules"])
        .run()
        .ended_with(2)
        .saying("cannot read");
}

/// All names below `root` of the place.
fn entries(place: &Place) -> Vec<PathBuf> {
    tree(&place.join("root")).into_keys().collect()
}

/// Installs below `root` of the place.
fn install(place: &Place, whom: &[&str]) -> Ran {
    let module = PathBuf::from("/modules/evener.so");
    place.module("root/modules/evener.so");
    let run = place.evener().args(["provider", "install", "--root", "root", "--base", "base.cnf", "--file"]);
    run.arg(module).args(whom).env("XDG_CONFIG_HOME", "/home/me/.config").run()
}

#[test]
fn a_service_a_user_and_a_system_get_two_files_and_a_way_back() {
    let cases: [(&[&str], &str, &str, &str); 3] = [
        (
            &["--unit", "nginx@1.service"],
            "etc/evener/nginx@1.service.cnf",
            "etc/systemd/system/nginx@1.service.d/60-evener.conf",
            "Environment=",
        ),
        (
            &["--user"],
            "home/me/.config/evener/openssl.cnf",
            "home/me/.config/environment.d/60-evener.conf",
            "OPENSSL_CONF=",
        ),
        (
            &["--system", "--yes-system-wide"],
            "etc/evener/openssl.cnf",
            "etc/systemd/system.conf.d/60-evener.conf",
            "DefaultEnvironment=",
        ),
    ];
    for (whom, cnf, drop_in, sets) in cases {
        let place = place();
        place.write("base.cnf", DEBIAN);
        place.module("root/modules/evener.so");
        fs::create_dir_all(place.join("root/etc/environment.d")).unwrap();
        let entries_before = entries(&place);
        let output = install(&place, whom).succeeded().stdout_text().to_owned();
        let cnf_text = fs::read_to_string(place.join("root").join(cnf)).unwrap();
        let drop_in_text = fs::read_to_string(place.join("root").join(drop_in)).unwrap();
        assert!(cnf_text.contains("\nmodule = /modules/evener.so\n") && cnf_text.contains("\n.include "));
        let line = drop_in_text.lines().find(|line| line.starts_with(sets)).unwrap();
        assert!(line.contains(&format!("/{cnf}")) && line.contains("OPENSSL_CONF="), "{line}");
        assert_eq!(fs::metadata(place.join("root").join(cnf)).unwrap().permissions().mode() & 0o777, 0o644);
        // Again is fine: both are its own.
        install(&place, whom).succeeded();
        let undo = output.split("to undo it\n").nth(1).unwrap().trim();
        assert!(undo.starts_with(&format!("evener provider uninstall {}", whom[0])), "{undo}");
        let words: Vec<&str> = undo.split_whitespace().skip(1).map(|word| word.trim_matches('\'')).collect();
        place.evener().args(&words).env("XDG_CONFIG_HOME", "/home/me/.config").run().succeeded();
        assert_eq!(entries(&place), entries_before, "{whom:?}: directories that were made are gone, too");
        assert_eq!(files(&place.join("root")), [PathBuf::from("modules/evener.so")], "{whom:?}: {undo}");
    }
}

#[test]
fn what_is_installed_does_something_and_says_what_was_asked_for() {
    let cases: [(&[&str], &str); 4] = [
        (&[], "combine = auto\n"),
        (&["--no-combine"], ""),
        (&["--threads", "auto", "--no-combine"], "threads = auto\n"),
        (
            &["--threads", "2", "--host", "/run/evener.sock", "--module", "afalg:cbc-aes-dcp"],
            "combine = auto\nthreads = 2\nmodules = afalg:cbc-aes-dcp hosted:/run/evener.sock\n",
        ),
    ];
    for (options, keys) in cases {
        let place = place();
        place.write("base.cnf", "");
        install(&place, &[&["--unit", "a.service"], options].concat()).succeeded();
        let text = fs::read_to_string(place.join("root/etc/evener/a.service.cnf")).unwrap();
        let section = text.split("module = /modules/evener.so\nactivate = 1\n").nth(1).unwrap();
        assert_eq!(section.split("\n#").next().unwrap().trim_end_matches('\n'), keys.trim_end_matches('\n'));
    }
    for wrong in [["--threads", "0"], ["--threads", "34"], ["--threads", "many"], ["--host", "a b"]] {
        let place = place();
        place.write("base.cnf", "");
        install(&place, &[&["--unit", "a.service"], &wrong[..]].concat()).ended_with(2);
    }
}

#[test]
fn all_that_was_installed_for_the_system_is_taken_back_at_once_and_nothing_else() {
    let place = place();
    place.write("base.cnf", "");
    place.module("root/modules/evener.so");
    place.write("root/etc/systemd/system/a.service.d/mine.conf", "[Service]\n");
    place.write("root/etc/systemd/system/b.service.d/60-evener.conf", "mine\n");
    place.write("root/etc/evener/mine.cnf", "mine\n");
    // Links of the administrator's stay, and lead nowhere that is looked at.
    let link = |to: &str, name: &str| symlink(to, place.join("root").join(name)).unwrap();
    link("a.service.cnf", "etc/evener/web.cnf");
    link("a.service.d", "etc/systemd/system/web.service.d");
    let before = entries(&place);
    for unit in ["a.service", "c.service"] {
        install(&place, &["--unit", unit]).succeeded();
    }
    install(&place, &["--system", "--yes-system-wide"]).succeeded();
    // Again, so that what is written over keeps its memory of directories.
    install(&place, &["--unit", "c.service"]).succeeded();
    let uninstall =
        |whom: &[&str]| place.evener().args(["provider", "uninstall", "--root", "root"]).args(whom).run();
    uninstall(&["--unit", "b.service"]).succeeded().saying("is not Evener's");
    let all = uninstall(&["--all"]).succeeded();
    assert_eq!(all.stdout_text().matches("root/etc/").count(), 7, "{}", all.stdout_text());
    assert_eq!(entries(&place), before);
    assert!(uninstall(&["--all"]).succeeded().stdout_text().contains("nothing to undo"));
    uninstall(&[]).ended_with(2).saying("--all");
}

#[test]
fn nobody_elses_file_is_touched() {
    for (path, text) in [
        ("root/etc/systemd/system/a.service.d/60-evener.conf", "[Service]\nUser=me\n"),
        ("root/etc/evener/a.service.cnf", "mine\n"),
    ] {
        let place = place();
        place.write("base.cnf", "");
        place.module("root/modules/evener.so");
        place.write(path, text);
        let before = tree(&place.join("root")).len();
        install(&place, &["--unit", "a.service"]).ended_with(2).saying("not Evener's");
        assert_eq!(fs::read_to_string(place.join(path)).unwrap(), text);
        assert_eq!(tree(&place.join("root")).len(), before, "nothing else was written");
    }
    let place = place();
    place.write("base.cnf", "");
    place.write("precious", "kept");
    fs::create_dir_all(place.join("root/etc/evener")).unwrap();
    symlink(place.join("precious"), place.join("root/etc/evener/a.service.cnf")).unwrap();
    install(&place, &["--unit", "a.service"]).ended_with(2).saying("not Evener's");
    assert_eq!(fs::read_to_string(place.join("precious")).unwrap(), "kept");
}

#[test]
fn what_would_surprise_is_refused_before_anything_is_written() {
    let place = place();
    place.write("base.cnf", "");
    let cases: [(&[&str], &str); 7] = [
        (&["--system"], "--yes-system-wide"),
        (&[], "--unit"),
        (&["--user", "--system"], "--system"),
        (&["--user", "--yes-system-wide"], "--system"),
        (&["--unit", "nginx"], "nginx.service"),
        (&["--unit", "../a.service"], "no service"),
        (&["--unit", "a b.service"], "no service"),
    ];
    for (whom, words) in cases {
        install(&place, whom).ended_with(2).saying(words);
    }
    assert_eq!(files(&place.join("root")), [PathBuf::from("modules/evener.so")]);
    let missing =
        ["provider", "install", "--root", "root", "--file", "/gone/evener.so", "--unit", "a.service"];
    place.evener().args(missing).run().ended_with(2).saying("root/gone/evener.so is not there");
}

#[test]
fn a_service_that_has_a_configuration_of_its_own_keeps_it() {
    let place = place();
    place.module("root/modules/evener.so");
    place.write("root/lib/systemd/system/a.service", "[Service]\nEnvironment=OPENSSL_CONF=/etc/a.cnf\n");
    let run = || {
        place.evener().args([
            "provider",
            "install",
            "--root",
            "root",
            "--file",
            "/modules/evener.so",
            "--unit",
            "a.service",
        ])
    };
    run().run().ended_with(2).saying("--base");
    place.write("base.cnf", DEBIAN);
    run().args(["--base", "base.cnf"]).run().succeeded();
    let text = fs::read_to_string(place.join("root/etc/evener/a.service.cnf")).unwrap();
    assert!(text.contains(&format!(".include {}\n", place.join("base.cnf").display())));
}

/// Names of all that lies below `root`.
fn paths_below(root: &Path) -> Vec<PathBuf> {
    tree(root).into_keys().collect()
}

/// OpenWrt's openssl.cnf as its package libopenssl-conf has it, in what matters here; `root` stands before what it includes.
fn openwrt(root: &str) -> String {
    format!(
        "openssl_conf = openssl_init\n[openssl_init]\nproviders = provider_sect\nengines = engines_sect\n\
         [provider_sect]\ndefault = default_sect\n.include {root}/var/etc/ssl/providers.cnf\n[default_sect]\nactivate = 1\n\
         [engines_sect]\n.include {root}/var/etc/ssl/engines.cnf\n.include {root}/etc/ssl/modules.cnf.d\n\n[tsa]\ndefault_tsa = a\n"
    )
}

#[test]
fn on_openwrt_a_file_that_its_configuration_includes_does_it_and_goes_again() {
    let place = Place::new();
    let root = place.join("root");
    place.write("root/etc/openwrt_release", "DISTRIB_ID='OpenWrt'\n");
    place.write("root/etc/ssl/openssl.cnf", openwrt(""));
    fs::create_dir(place.join("root/etc/ssl/modules.cnf.d")).unwrap();
    place.module("root/usr/lib/ossl-modules/evener.so");
    let before = paths_below(&root);
    let provider = |words: &[&str]| place.evener().arg("provider").args(words).args(["--root", "root"]).run();
    let said = provider(&["install", "--system", "--yes-system-wide"]).succeeded().stdout_text().to_owned();
    assert!(said.contains("uci set openssl.evener=provider") && !said.contains("systemctl"), "{said}");
    let text = fs::read_to_string(place.join("root/etc/ssl/modules.cnf.d/evener.cnf")).unwrap();
    assert!(text.contains("\nmodule = /usr/lib/ossl-modules/evener.so\n"), "{text}");

    // What its init script makes of /etc/config/openssl.
    place.write("root/var/etc/ssl/providers.cnf", "evener = evener_sect\n");
    let fragment = text
        .replace("module = /usr/lib/ossl-modules/evener.so\n", "")
        .replace("identity = evener", "identity = legacy");
    place.write("root/etc/ssl/modules.cnf.d/evener.cnf", fragment);
    place.write("read.cnf", openwrt(&root.display().to_string()));
    let openssl = |words: &[&str]| {
        let ran = place.program("openssl").args(words).env("OPENSSL_CONF", place.join("read.cnf")).run();
        ran.succeeded().stdout_text().to_owned()
    };
    let output = openssl(&["list", "-providers"]);
    let mut names = names_of_providers(&output);
    names.sort_unstable();
    assert_eq!(names, ["default", "legacy"]);

    place.write("root/etc/ssl/modules.cnf.d/evener.cnf", text);
    fs::remove_dir_all(place.join("root/var")).unwrap();
    let said = provider(&["uninstall", "--all"]).succeeded().stdout_text().to_owned();
    assert!(said.contains("uci delete openssl.evener"), "{said}");
    assert_eq!(paths_below(&root), before);
    // Its services have no environment of their own, and a package's own file is not ours.
    provider(&["install", "--unit", "nginx.service"]).ended_with(2).saying("--system");
    place.write("root/etc/ssl/modules.cnf.d/evener.cnf", "[evener_sect]\nactivate = 1\n");
    provider(&["install", "--system", "--yes-system-wide"]).ended_with(2).saying("not Evener's");
}

#[test]
fn on_alpine_sessions_get_it_by_their_profile_and_services_by_a_line_that_is_said() {
    let place = Place::new();
    let root = place.join("root");
    place.write("root/etc/alpine-release", "3.22.0\n");
    place.write("root/etc/ssl/openssl.cnf", DEBIAN);
    place.module("root/usr/lib/ossl-modules/evener.so");
    let before = paths_below(&root);
    let provider = |words: &[&str]| place.evener().arg("provider").args(words).args(["--root", "root"]).run();
    let said = provider(&["install", "--system", "--yes-system-wide"]).succeeded().stdout_text().to_owned();
    assert!(said.contains("/etc/conf.d: export OPENSSL_CONF=") && !said.contains("systemctl"), "{said}");
    let profile = fs::read_to_string(place.join("root/etc/profile.d/60-evener.sh")).unwrap();
    place.write("profile.sh", &profile);
    let shell = place.program("sh").args(["-c", ". ./profile.sh; echo $OPENSSL_CONF"]).run().succeeded();
    assert_eq!(shell.stdout_text().trim(), "/etc/evener/openssl.cnf");
    let cnf = fs::read_to_string(place.join("root/etc/evener/openssl.cnf")).unwrap();
    assert!(cnf.contains("\n.include /etc/ssl/openssl.cnf\n"), "{cnf}");
    assert!(cnf.contains("\nmodule = /usr/lib/ossl-modules/evener.so\n"), "{cnf}");
    // The section is the one of that root's file, and not of this machine's.
    assert!(cnf.contains("\n[openssl_init]\n"), "{cnf}");
    provider(&["uninstall", "--system"]).succeeded();
    assert_eq!(paths_below(&root), before);
    let said = provider(&["install", "--unit", "nginx.service"]).succeeded().stdout_text().to_owned();
    assert!(
        said.contains("/etc/conf.d/nginx: export OPENSSL_CONF=\"/etc/evener/nginx.service.cnf\""),
        "{said}"
    );
    provider(&["uninstall", "--all"]).succeeded();
    assert_eq!(paths_below(&root), before);
}
