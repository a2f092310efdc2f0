//! A module that failed or was slow for a while is taken back, by a program whose threads do its jobs themselves where no module is worth
//! while. Costs are emulated; asserted is that the module gets jobs again, within far more bursts than docs/design/adaptive.md promises.
#![allow(clippy::vec_box, reason = "a job travels as a box of eight bytes through every queue")]
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

use evener::{Caller, CoreDrivers, ModuleSetup, Setup, run};
use evener_core::estimate::ModuleSample;
use evener_core::plan::Policy;
use evener_core::{Algorithm, Estimator, Job, Method, Nanos};
use evener_driver_emulated::{Control, CostedCpu, Counters, Emulated, Fault, Preset, When};
use evener_driver_libcrypto::Libcrypto;
use evener_testing::cases::{Case, spaces};
use evener_testing::waiting::without_standstill;

/// A request takes longer than a core does for it, and leaves it most of its time.
const COSTS: &str = "emulated:d=50000+0,h=1500000+0,c=1000000+0";
const D_H_C: [u64; 3] = [50_000, 1_500_000, 1_000_000];

/// A request takes so many per cent of that when the module is slow: it adds next to nothing then.
const SLOW: u32 = 2_500;

/// Bursts within which anything must have happened.
const BURSTS_MAX: usize = 400;

/// Requests that a module gets which is worth its while, and no number of tries.
const SOME: u64 = 24;

/// A program that brings one burst after the other.
struct Program<'p, 'r, 'm> {
    caller: Caller<'r, 'm>,
    cases: &'m [Case],
    armed: &'p mut Vec<Box<Job<'m>>>,
    module: Control,
}

impl Program<'_, '_, '_> {
    /// Brings bursts until the module's counts before and behind one are as `is_so` says.
    fn bring_until(&mut self, step: &str, is_so: impl Fn(Counters, Counters) -> bool) {
        let has_come = (0..BURSTS_MAX).any(|_| {
            let before = self.module.counters();
            self.cases.iter().zip(&mut *self.armed).for_each(|(case, job)| case.arm(job));
            self.caller.crypt(self.armed);
            self.cases.iter().zip(&*self.armed).for_each(|(case, job)| case.check(job));
            is_so(before, self.module.counters())
        });
        assert!(has_come, "{step}: {:?}", self.module.counters());
    }

    /// Brings bursts until the module has taken some more.
    fn bring_until_it_works(&mut self) {
        let before = self.module.counters().submitted;
        self.bring_until("it works", |_, now| now.submitted >= before + SOME);
    }
}

/// Runs `body` with a program whose bursts are so long, beside a module that is known as it is.
fn beside_a_module(burst: usize, body: impl FnOnce(&mut Program<'_, '_, '_>) + Send + 'static) {
    without_standstill(move || {
        let cases: Vec<Case> = (0..burst).map(|seed| Case::encrypt(Algorithm::Aes128Cbc, seed, 64)).collect();
        let mut spaces = spaces(&cases);
        let mut armed: Vec<_> = spaces.iter_mut().map(|space| Job::in_place(space)).collect();
        cases.iter().zip(&mut armed).for_each(|(case, job)| case.arm(job));
        let preset: Preset = COSTS.parse().unwrap();
        let libcrypto = || Box::new(Libcrypto::new().unwrap());
        let core_drivers = || CoreDrivers::new(Box::new(CostedCpu::new(libcrypto(), preset.clone())), None);
        let (mut learned, [d, h, c]) = (Estimator::new(1), D_H_C.map(Nanos));
        let class = armed[0].class();
        for now in 1..=16 {
            let sample = ModuleSample { jobs: 1, bytes: 64, d, h, now: Nanos(now) };
            learned.saw_cpu(class, Method::Plain, 1, 64, c);
            learned.saw_module(0, class, &sample);
        }
        let module = Emulated::new(preset.clone(), libcrypto());
        let control = module.control();
        let setup = Setup {
            policy: Policy::Adaptive,
            callers: 2,
            cores: 2,
            modules: vec![ModuleSetup::new(Box::new(module), core_drivers())],
            learned,
            ..Setup::default()
        };
        run(setup, |runtime| {
            let (caller, armed) = (runtime.caller(core_drivers()), &mut armed);
            body(&mut Program { caller, cases: &cases, armed, module: control });
        });
    });
}

#[test]
fn a_module_that_failed_some_requests_gets_others_as_before() {
    beside_a_module(48, |program| {
        program.bring_until_it_works();
        let next = program.module.counters().submitted + 1;
        program.module.set_fault(Fault::Error { code: 5 }, When { from: next, every: 2 });
        program.bring_until("it fails", |_, now| now.faults >= 3);
        program.module.set_fault(Fault::None, When::ALWAYS);
        program.bring_until_it_works();
    });
}

#[test]
fn a_module_that_was_slow_is_taken_back() {
    // More at a time than it is thought to take, or its turn comes only after long.
    beside_a_module(96, |program| {
        program.bring_until_it_works();
        program.module.set_pace(SLOW);
        let slow = program.module.counters().submitted;
        // Two slow requests are believed.
        program.bring_until("it is left alone", |before, now| {
            now.completed >= slow + 2 && now.submitted == before.submitted
        });
        program.module.set_pace(100);
        program.bring_until_it_works();
    });
}
