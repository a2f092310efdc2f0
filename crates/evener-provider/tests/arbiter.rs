//! Programs of one user that have one module of another process: what the first learned serves the second, and one that would wait for longer
//! than its core takes does not.
//!
//! What the first learned is written by the test, for what programs learn of a module depends on what else runs (`crates/evener/tests/shared_modules.rs` has processes that learn).

#![allow(unsafe_code, reason = "room: its support calls libcrypto")]
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test may panic; the host says that it serves"
)]

use std::env;

use evener_arbiter::{Arbiter, Costs, DIRECTORY_VARIABLE, Mean, Options};
use evener_core::{Algorithm, Class, Direction, Nanos};
use evener_fd::Directories;
use evener_provider::OSSL_provider_init;

mod support;

use evener_testing::arbiters::ArbiterFolder;
use evener_testing::hosts::{AT_ONCE, HostProcess, requests, serve};
use evener_testing::waiting::soon;
use support::ffi::{CipherCtx, DEFAULT, Provider};
use support::{bytes, in_program};

/// Which program of a test this is.
const ROLE: &str = "PROVIDER_TEST_ROLE";

const BYTES: usize = 256 << 10;

#[test]
#[ignore = "the process of a host, which the tests start"]
fn host_process() {
    serve();
}

/// Programs with the module of one host, in the segment of one folder.
struct Programs {
    name: &'static str,
    host: HostProcess,
    folder: ArbiterFolder,
}

impl Programs {
    /// Those of a test that runs in its programs what [`has_run_its_part`] does; none in such a program.
    fn of_messages(name: &'static str, messages: u64) -> Option<Self> {
        (!has_run_its_part(messages)).then(|| Self::new(name))
    }

    fn new(name: &'static str) -> Self {
        Self { name, host: HostProcess::start("host_process", AT_ONCE), folder: ArbiterFolder::new() }
    }

    /// Runs this test's body in a program; returns how many requests the host did for it.
    fn run(&self, role: &str, more: &[(&str, &str)]) -> u64 {
        let before = requests(&self.host.control());
        let module = self.host.module();
        let folder = self.folder.path().display().to_string();
        let usual = [
            ("EVENER_MODULES", &*module),
            ("EVENER_ARBITER", "on"),
            (DIRECTORY_VARIABLE, &*folder),
            (ROLE, role),
        ];
        let variables: Vec<_> = usual.iter().chain(more).copied().collect();
        in_program(self.name, "", &variables, || panic!("a program runs its own part"));
        requests(&self.host.control()) - before
    }

    /// Writes what a program learns that takes a thirtieth of its core's time at the module.
    fn learn(&self) {
        let class = Class::of(Algorithm::Aes256Cbc, Direction::Encrypt, BYTES, false);
        let mean = |ns| Mean { ns, deviation_ns: ns / 10 };
        let (c, d, h) = (mean(30_000_000), mean(100_000), mean(900_000));
        let costs = Costs { c, d, h, bytes: u32::try_from(BYTES).unwrap(), samples: 15 };
        self.folder.attach().module(&self.module(), 64).publish(class, &costs);
    }

    /// The host's module as the arbiter calls it.
    fn module(&self) -> String {
        self.host.module().split(',').next().unwrap().to_owned()
    }
}

/// What this program is to do; none in the test itself.
fn role() -> Option<String> {
    env::var(ROLE).ok()
}

fn providers() -> (Provider, Provider) {
    DEFAULT.add_builtin("evener", OSSL_provider_init);
    let both = (DEFAULT.load("default").unwrap(), DEFAULT.load("evener").unwrap());
    drop(std::panic::take_hook());
    assert_eq!(both.1.says(c"buildinfo").as_deref(), Some(env!("CARGO_PKG_VERSION")));
    both
}

/// One message of one update, by the provider and by default: both come out alike.
fn message(seed: u64) {
    let text = bytes(seed, BYTES);
    let [evener, default] = ["provider=evener", "provider=default"].map(|properties| {
        let cipher = DEFAULT.cipher("AES-256-CBC", properties).unwrap();
        let ctx = CipherCtx::new();
        assert!(ctx.init(Some(&cipher), Some(&bytes(1, 32)), Some(&bytes(2, 16)), Some(true)));
        ctx.update(&text).unwrap()
    });
    assert!(evener == default);
}

/// Runs the part of a program that a test started: so many messages. False in the test itself.
fn has_run_its_part(messages: u64) -> bool {
    let is_program = role().is_some();
    if is_program {
        let _providers = providers();
        (0..messages).for_each(message);
    }
    is_program
}

#[test]
fn the_first_large_request_of_a_program_takes_the_module_that_an_earlier_one_found_to_pay() {
    let name = "the_first_large_request_of_a_program_takes_the_module_that_an_earlier_one_found_to_pay";
    let Some(programs) = Programs::of_messages(name, 1) else { return };
    assert_eq!(programs.run("short", &[]), 0, "nothing is known yet");
    programs.learn();
    assert_eq!(programs.run("short", &[]), 1);
    assert_eq!(programs.run("short", &[("EVENER_ARBITER", "off")]), 0, "it knows of nobody");
}

#[test]
fn a_program_uses_its_core_while_others_have_the_module_for_longer() {
    let name = "a_program_uses_its_core_while_others_have_the_module_for_longer";
    let Some(programs) = Programs::of_messages(name, 3) else { return };
    programs.learn();
    // As many processes as there are permits, each with a request of four seconds.
    let module = programs.module();
    let holders: Vec<Arbiter> = (0..4).map(|_| programs.folder.attach()).collect();
    let modules: Vec<_> = holders.iter().map(|holder| holder.module(&module, 64)).collect();
    let held: Vec<_> =
        (0..64).map(|number| modules[number % 4].try_acquire(Nanos::from_millis(4_000)).unwrap()).collect();
    assert_eq!(programs.run("short", &[]), 0);
    drop(held);
    assert!(soon(|| programs.run("short", &[]) > 0), "the module is free again");
}

#[test]
fn a_program_goes_on_alone_where_there_is_no_place_for_the_arbiter_and_says_so() {
    let name = "a_program_goes_on_alone_where_there_is_no_place_for_the_arbiter_and_says_so";
    if role().is_some() {
        DEFAULT.add_builtin("evener", OSSL_provider_init);
        let (_default, evener) = (DEFAULT.load("default").unwrap(), DEFAULT.load("evener").unwrap());
        drop(std::panic::take_hook());
        let says = evener.says(c"buildinfo").unwrap();
        assert!(says.starts_with("arbiter = on: no directory that is this user's alone"), "{says}");
        return message(0);
    }
    let programs = Programs::new(name);
    // A directory that others may write to is not believed.
    evener_testing::allow(programs.folder.path(), 0o777);
    programs.run("alone", &[]);
    assert!(programs.folder.path().read_dir().unwrap().next().is_none(), "nothing was made");
    evener_testing::allow(programs.folder.path(), 0o700);
    let options =
        Options { directories: Directories::only(programs.folder.path().to_owned()), ..Options::default() };
    assert_eq!(Arbiter::look(&options).unwrap(), None);
}

#[test]
fn a_program_has_the_weight_that_its_configuration_says() {
    let name = "a_program_has_the_weight_that_its_configuration_says";
    if role().is_some() {
        let _providers = providers();
        let options =
            Options { directories: Directories::from_environment(DIRECTORY_VARIABLE), ..Options::default() };
        let all = Arbiter::look(&options).unwrap().unwrap().processes;
        let own = all.iter().find(|process| process.pid == std::process::id()).unwrap();
        return assert_eq!(own.weight, 3);
    }
    Programs::new(name).run("weighs", &[("EVENER_ARBITER", "3")]);
}
