//! Options that several commands share: modules of a run, and what decides between them and the cores.

use clap::builder::{PossibleValuesParser, TypedValueParser};
use evener::core::Objective;
use evener::core::plan::Policy;
use evener_driver_emulated::Preset;
use evener_machine::Choice;
use evener_machine::modules::ModuleSpec;

/// Modules beside the cores, and hardware that is not there, for experiments.
#[derive(clap::Args, Clone, Default)]
#[command(next_help_heading = "Scheduling")]
pub(crate) struct ModuleOptions {
    /// Adds a module: hosted:SOCKET, afalg:DRIVER, ....
    ///
    /// hosted:SOCKET, the module of an `evener host` (CBC encryption and hashes, more with
    /// hosted:SOCKET,offer=all; hosted:SOCKET,uid=N where it runs as a user other than root and you); afalg:DRIVER, a driver of the kernel; devcrypto or devcrypto:/dev/NAME, a node of OCF (`evener
    /// devices` lists both); or an emulated one, emulated:am3358, emulated:cell, or emulated:d=A+B,h=A+B. May be repeated.
    #[arg(long = "module", value_name = "MODULE")]
    pub(crate) modules: Vec<ModuleSpec>,

    /// Makes a job on the CPU as dear as on the processor of an emulated module: emulated:am3358.
    #[arg(hide_short_help = true, long, value_name = "MODULE")]
    pub(crate) cpu_cost: Option<Preset>,
}

impl ModuleOptions {
    /// It as the machine takes it.
    pub(crate) fn choice(&self) -> Choice {
        Choice { modules: self.modules.clone(), cpu_cost: self.cpu_cost.clone() }
    }

    /// Whether anything is emulated, so that no figure is a speed of Evener.
    pub(crate) fn emulates(&self) -> bool {
        self.cpu_cost.is_some() || self.modules.iter().any(|module| matches!(module, ModuleSpec::Emulated(_)))
    }
}

pub(crate) fn policy_parser() -> impl TypedValueParser<Value = Policy> {
    PossibleValuesParser::new(Policy::ALL.map(Policy::name))
        .map(|name| name.parse().expect("a possible value is a policy"))
}

pub(crate) fn objective_parser() -> impl TypedValueParser<Value = Objective> {
    PossibleValuesParser::new(Objective::ALL.map(Objective::name))
        .map(|name| name.parse().expect("a possible value is an objective"))
}
