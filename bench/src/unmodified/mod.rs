//! Programs as their distributors made them, on OpenSSL alone and with the provider: what they take of the cores, and what bounds that.
//!
//! Path of one program: it is there, is installed, or is one line ([`install`]) -> it prepares its data by OpenSSL alone ([`Program::prepare`]) -> the cipher's share of it is sampled ([`profile`]) -> in each round it works by all
//! configurations in turn ([`configuration::turns`]), timed ([`place::Run`]), and what came out is compared with the truth -> medians and quartiles of ratios within a round ([`report`]).

mod account;
pub mod configuration;
mod install;
pub mod place;
mod profile;
pub mod program;
mod programs;
pub mod report;
mod sampler;
mod search_path;

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use evener::Cancel;

use crate::error::BenchError;
use configuration::{Configuration, turns};
use place::{Place, Run};
use program::{Program, Work};
use report::{Measured, Profile};

pub use install::POLICY;
pub use programs::ALL;
pub use report::Table;

/// What is to be measured.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The provider's file, whole.
    pub module: PathBuf,
    /// Rounds that count: in each, every configuration.
    pub rounds: usize,
    /// Whether packages that are missing are installed.
    pub installs_missing: bool,
    /// What Debian asks before a package's script starts a server ([`POLICY`]).
    pub policy: PathBuf,
    /// The processor, for the report.
    pub machine: String,
}

/// Measures one program; `None` where it is not there, with a line that says so.
///
/// # Errors
///
/// [`BenchError::WrongFile`] where what came out is not what should, [`BenchError::Stopped`] where `cancel` says so, others where the program cannot be run.
pub fn measure(
    plan: &Plan,
    program: &dyn Program,
    cancel: &Cancel,
    mut tell: impl FnMut(&str),
) -> Result<Option<Measured>, BenchError> {
    if install::missing(program).is_some() && plan.installs_missing {
        tell(&format!("installing {}", program.packages().join(", ")));
        install::install(program, &plan.policy)?;
    }
    if let Some(line) = install::skip_line(program, rustix::process::geteuid().is_root()) {
        tell(&line);
        return Ok(None);
    }
    tell(&format!("{}: {}", program.name(), program.what()));
    let place = Place::make(&plan.module, program.hand(), cancel)?;
    let mut work = program.prepare(&place)?;
    // Warms up, and lets the provider measure what it measures once on a machine.
    let mut plain_s = 0.0;
    for configuration in Configuration::ALL {
        let run = place.run(configuration, None);
        checked(program, work.as_mut(), &run, configuration, cancel)?;
        if configuration == Configuration::Plain {
            plain_s = run.used().core_s;
        }
    }
    let profile = profiled(plan, &place, program, work.as_mut(), plain_s, cancel)?;
    let (mut runs, mut counts) = (BTreeMap::<_, Vec<_>>::new(), BTreeMap::new());
    for round in 0..plan.rounds {
        for configuration in turns(round) {
            let run = place.run(configuration, None);
            checked(program, work.as_mut(), &run, configuration, cancel)?;
            runs.entry(configuration).or_default().push(run.used());
            counts.insert(configuration, place.counted(configuration));
        }
    }
    Ok(Some(Measured {
        name: program.name().to_owned(),
        what: program.what().to_owned(),
        circumstances: circumstances(plan, program, &place),
        hand: program.hand().iter().map(|&line| line.to_owned()).collect(),
        asked: program.figure(),
        profile,
        rows: report::rows(&runs, &counts),
    }))
}

/// One run, whose result is what it should be.
fn checked(
    program: &dyn Program,
    work: &mut dyn Work,
    run: &Run<'_>,
    configuration: Configuration,
    cancel: &Cancel,
) -> Result<(), BenchError> {
    if cancel.is_cancelled() {
        return Err(BenchError::Stopped);
    }
    let proof = work.once(run)?;
    if proof == work.truth() {
        return Ok(());
    }
    let contender = format!("{} ({})", program.name(), configuration.name());
    Err(BenchError::WrongFile { contender, direction: format!("{proof}, not {}", work.truth()) })
}

/// Where plain's time goes, and how much of `default`'s the provider has.
#[expect(clippy::cast_precision_loss, reason = "a share for people")]
fn profiled(
    plan: &Plan,
    place: &Place,
    program: &dyn Program,
    work: &mut dyn Work,
    plain_s: f64,
    cancel: &Cancel,
) -> Result<Profile, BenchError> {
    let (cipher, has_perf) = (program.cipher(), profile::is_there(place));
    let alone = profile::alone(place, &cipher, has_perf)?;
    if !has_perf {
        let cipher_s = cipher.volume_bytes as f64 / (alone.rates[0] * 1e9);
        return Ok(Profile {
            by: "by volume and the rate of `openssl speed`: there is no perf".to_owned(),
            cipher: (cipher_s / plain_s).min(1.0),
            rates: alone.rates,
            ..Profile::default()
        });
    }
    let mut sampled = |configuration| {
        let file = profile::file_for(place, configuration);
        checked(program, work, &place.run(configuration, Some(file.clone())), configuration, cancel)?;
        profile::samples(&file)
    };
    let (plain, default) = (sampled(Configuration::Plain)?, sampled(Configuration::Default)?);
    Ok(Profile {
        by: "perf".to_owned(),
        cipher: plain.share_of(&alone),
        files: plain.greatest(4),
        provider: Some(default.share_in(&profile::file_name(&plan.module))),
        rates: alone.rates,
    })
}

/// Date, machine, libraries and versions, load.
fn circumstances(plan: &Plan, program: &dyn Program, place: &Place) -> Vec<String> {
    let said = |name: &str, words: &[&str]| {
        let mut command = place.plain(name);
        command.args(words);
        place::said(command).unwrap_or_default()
    };
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    let load = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let mut words = vec!["-W", "-f", "${Package} ${Version}, "];
    words.extend(program.packages());
    vec![
        said("date", &["-u", "+%Y-%m-%d"]),
        format!("{}, {cores} cores", plan.machine),
        said("openssl", &["version"]),
        said("dpkg-query", &words).trim_end_matches([',', ' ']).to_owned(),
        format!("core time by {}", place.account()),
        format!("load {}", load.split(' ').next().unwrap_or_default()),
    ]
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::unmodified::program::Cipher;

    /// A shell that answers with the word of its configuration, unless it is a word that it is to get wrong.
    struct Shell(&'static str);

    impl Program for Shell {
        fn name(&self) -> &'static str {
            "shell"
        }

        fn what(&self) -> &'static str {
            "says a word"
        }

        fn packages(&self) -> &'static [&'static str] {
            &["no-such-package", "another"]
        }

        fn needs(&self) -> &'static [&'static str] {
            &["sh", "/no/such/file"]
        }

        fn cipher(&self) -> Cipher {
            Cipher { name: "aes-256-gcm", bytes: 64, is_decrypted: false, volume_bytes: 0 }
        }

        fn hand(&self) -> &'static [&'static str] {
            &[]
        }

        fn prepare(&self, _: &Place) -> Result<Box<dyn Work>, BenchError> {
            Ok(Box::new(Self(self.0)))
        }
    }

    impl Work for Shell {
        fn once(&mut self, run: &Run<'_>) -> Result<String, BenchError> {
            let mut command = run.command("sh");
            command.args(["-c", "case $OPENSSL_CONF in *$0.cnf) echo wrong;; *) echo right;; esac", self.0]);
            run.timed(|| run.said(command))
        }

        fn truth(&self) -> &str {
            "right"
        }
    }

    #[test]
    fn a_wrong_output_by_one_configuration_ends_the_measurement_and_names_it() {
        let place = Place::make(Path::new("/no/module"), &[], &Cancel::default()).unwrap();
        let shell = Shell("hand");
        let mut work = shell.prepare(&place).unwrap();
        let mut outcome = |configuration| {
            let run = place.run(configuration, None);
            let outcome = checked(&shell, work.as_mut(), &run, configuration, &Cancel::default());
            assert!(run.used().wall_s > 0.0);
            outcome.map_err(|error| error.to_string())
        };
        for configuration in Configuration::ALL {
            let outcome = outcome(configuration);
            if configuration == Configuration::Hand {
                let told = outcome.unwrap_err();
                assert!(told.contains("shell (by hand)") && told.contains("wrong, not right"), "{told}");
            } else {
                assert_eq!(outcome, Ok(()), "{}", configuration.name());
            }
        }
    }

    #[test]
    fn a_program_that_is_not_there_is_one_line_with_its_packages() {
        let plan = Plan {
            module: "/no/module".into(),
            rounds: 1,
            installs_missing: false,
            policy: "/no/policy".into(),
            machine: String::new(),
        };
        let mut lines = Vec::new();
        let tell = |line: &str| lines.push(line.to_owned());
        assert!(measure(&plan, &Shell(""), &Cancel::default(), tell).unwrap().is_none());
        assert_eq!(lines, ["skipped: shell needs no-such-package, another"]);
    }

    #[test]
    fn each_program_has_a_name_of_its_own_and_says_what_it_needs_and_what_a_user_would_write() {
        for (at, program) in ALL.iter().enumerate() {
            assert!(ALL[at + 1..].iter().all(|other| other.name() != program.name()));
            assert!(
                !program.hand().is_empty() && !program.packages().is_empty() && !program.needs().is_empty()
            );
        }
    }
}
