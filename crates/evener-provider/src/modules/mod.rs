//! Modules that the administrator names, `modules =` in `[evener_sect]`: devices' files are opened while the provider is loaded, hosts are connected to when a
//! cipher is first looked for (`setup.rs`), and at no other time, for later the program may have no right to.
//!
//! Path: the name in the configuration ([`ModuleName`]) -> opened, once in a process; a device only reserved, until a request is to be
//! tried there -> an engine behind the route (`engine.rs`), over `evener::offload`. Known answers are not checked here, for that takes
//! longer than many a program: the engine compares its first results. What cannot be opened is a complaint; the provider works without it.

mod engine;
mod sharing;

use std::sync::{Arc, Mutex, PoisonError};

use evener::offload::Offload;
use evener_arbiter::Arbiter;
use evener_driver_kernel as kernel;
use evener_driver_virtio as hosted;

use crate::cipher::engine::registry::add_engine;
use crate::config::module_names::ModuleName;
use crate::config::{Complaint, Settings, Wait};
use crate::core::errors::Reason;

pub(crate) use sharing::prepare;

pub use engine::add_module;

/// Those that this process has opened, or tried to. Library contexts that name one module share it.
static TRIED: Mutex<Vec<(String, Result<(), String>)>> = Mutex::new(Vec::new());

/// Opens modules that are not open yet; returns how many there are. One thread of the process at a time.
pub(crate) fn open(settings: &Settings, watched: bool, complaints: &mut Vec<Complaint>) -> usize {
    // For moments only: what is opened may take long, and a child of a fork must not find the lock held.
    let tried = || TRIED.lock().unwrap_or_else(PoisonError::into_inner);
    let mut count = 0;
    for named in &settings.modules {
        let name = named.to_string();
        let known = tried().iter().find(|(other, _)| *other == name).map(|(_, answer)| answer.clone());
        let answer = known.unwrap_or_else(|| {
            let answer = if watched {
                open_one(named, settings.wait, sharing::arbiter(settings, complaints))
            } else {
                Err("the system does not tell of forks".to_owned())
            };
            tried().push((name.clone(), answer.clone()));
            answer
        });
        match answer {
            Ok(()) => count += 1,
            Err(why) => complaints
                .push(Complaint { reason: Reason::Unavailable, text: format!("modules = {name}: {why}") }),
        }
    }
    count
}

fn open_one(named: &ModuleName, wait: Wait, arbiter: Option<&Arbiter>) -> Result<(), String> {
    let name = named.to_string();
    let (mut shared, mut is_made_early) = (None, true);
    let offload = match named {
        ModuleName::Hosted(module) => match hosted::LazyModule::reserve(module) {
            // A host is woken for a batch, or not at all.
            None => {
                let shared_name = module.shared_name();
                let module = hosted::Module::connect(module).map_err(|error| error.to_string())?;
                shared = sharing::shared(arbiter, shared_name, hosted::PERMITS);
                let (module, driver) = twice(module);
                let does = engine::table(move |algorithm, direction| module.supports(algorithm, direction));
                Offload::new(name, does, move || driver.driver())
            }
            // To open it is dearer than all requests of a short program.
            Some(device) => {
                is_made_early = false;
                let (device, driver) = twice(device.map_err(|error| error.to_string())?);
                let single = Arc::clone(&driver);
                let does = engine::table(move |algorithm, direction| device.supports(algorithm, direction));
                Offload::new(name, does, move || driver.driver()).single(move || Some(single.single()))
            }
        },
        ModuleName::Kernel(module) => {
            let module = kernel::Module::bind(module).map_err(|error| error.to_string())?;
            shared = sharing::shared(arbiter, Some(name.clone()), module.depth());
            let (module, driver) = twice(module);
            let does = engine::table(move |algorithm, _| module.algorithms().contains(&algorithm));
            let caller = Arc::clone(&driver);
            let offload = Offload::new(name, does, move || driver.driver());
            match wait {
                Wait::Apart => offload.single(move || caller.timed()),
                Wait::Caller => offload.single(move || Some(caller.called())),
            }
        }
    };
    add_engine(engine::ModuleEngine::leaked(offload, shared, is_made_early));
    Ok(())
}

fn twice<T>(module: T) -> (Arc<T>, Arc<T>) {
    let module = Arc::new(module);
    (Arc::clone(&module), module)
}
