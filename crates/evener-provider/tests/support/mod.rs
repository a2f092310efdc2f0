//! Programs that use the provider, each in a process of its own: OpenSSL reads its configuration once per process.

#![allow(dead_code, unreachable_pub, clippy::should_implement_trait, reason = "each test file uses its part")]

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::{env, fs};

use evener_ossl_sys::ProviderInit;
pub use evener_testing::{Random, noise as bytes};
use ffi::{CipherCtx, DEFAULT, Provider};

pub mod ffi;
pub mod kernels;
pub mod lanes;
pub mod pair;
pub mod told;

/// Set in the process that a test starts to run its body in.
const CHILD: &str = "PROVIDER_TEST_CHILD";

/// A folder with `evener.so` and an `openssl.cnf`.
pub struct Place {
    folder: tempfile::TempDir,
}

/// The configuration that the documents recommend; `keys` go into Evener's section.
pub fn usual(keys: &str) -> String {
    configuration(&["default", "evener"], keys)
}

/// A configuration with the providers in this order.
pub fn configuration(providers: &[&str], keys: &str) -> String {
    let list: String = providers.iter().map(|name| format!("{name} = {name}_sect\n")).collect();
    format!(
        "openssl_conf = init\n[init]\nproviders = providers\nalg_section = properties\nrandom = random\n\
         [providers]\n{list}[default_sect]\nactivate = 1\n\
         [evener_sect]\nidentity = evener\nmodule = MODULE\nactivate = 1\n{keys}\n\
         [properties]\ndefault_properties = ?provider=evener\n[random]\nproperties = provider=default\n"
    )
}

impl Place {
    /// One with `text` as the configuration, where `MODULE` stands for the module's path.
    pub fn new(text: &str) -> Self {
        let place = Self { folder: tempfile::tempdir().unwrap() };
        fs::copy(built(), place.module()).unwrap();
        let text = text.replace("MODULE", place.module().to_str().unwrap());
        fs::write(place.conf(), text).unwrap();
        place
    }

    pub fn module(&self) -> PathBuf {
        self.folder.path().join("evener.so")
    }

    pub fn conf(&self) -> PathBuf {
        self.folder.path().join("openssl.cnf")
    }

    pub fn folder(&self) -> &Path {
        self.folder.path()
    }
}

/// The module as cargo has built it beside this test.
pub fn built() -> PathBuf {
    let test = env::current_exe().unwrap();
    let module = test.with_file_name("libevener_provider.so");
    assert!(module.exists(), "{} is missing", module.display());
    module
}

/// Runs `body` in a fresh process with `text` as OpenSSL's configuration and `variables` set besides. `name` is the
/// calling test's. The process must end well and print nothing but what the test runner prints.
pub fn in_program(name: &str, text: &str, variables: &[(&str, &str)], body: impl FnOnce()) {
    if env::var_os(CHILD).is_some() {
        return body();
    }
    let place = Place::new(text);
    let mut program = Command::new(env::current_exe().unwrap());
    program.args(["--exact", name, "--nocapture", "--test-threads=1"]).stdin(Stdio::null());
    // What other tests learn is none of this one's business.
    program.env("EVENER_ARBITER", "off");
    program.env("EVENER_STATISTICS_DIR", place.folder().join("statistics"));
    program.env(CHILD, place.folder()).env("OPENSSL_CONF", place.conf()).envs(variables.iter().copied());
    let output = program.output().unwrap();
    let (stdout, stderr) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{:?}\n{stdout}\n{stderr}", output.status);
    assert!(stdout.contains("1 passed"), "no test is called {name}: {stdout}");
    assert!(stderr.is_empty(), "a provider prints nothing: {stderr}");
}

/// The default provider and ours, which `init` of this program begins.
pub fn both_providers(init: ProviderInit) -> (Provider, Provider) {
    DEFAULT.add_builtin("evener", init);
    let both = (DEFAULT.load("default").unwrap(), DEFAULT.load("evener").unwrap());
    // Ours has hushed this program's panics.
    drop(std::panic::take_hook());
    both
}

/// A context in mid-message by the provider `who`, under the key and IV that noise of seed 1 and 2 is.
pub fn started(name: &str, who: &str, encrypts: bool, pads: bool) -> CipherCtx {
    let cipher = DEFAULT.cipher(name, &format!("provider={who}")).unwrap();
    let ctx = CipherCtx::new();
    let (key, iv) = (bytes(1, cipher.key_bytes()), bytes(2, cipher.iv_bytes()));
    assert!(ctx.init(Some(&cipher), Some(&key), Some(&iv), Some(encrypts)));
    ctx.set_padding(pads);
    ctx
}

/// The folder of the module, in the fresh process.
pub fn folder() -> String {
    env::var(CHILD).unwrap()
}
