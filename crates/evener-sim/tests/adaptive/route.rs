//! One caller that waits for each request, on a machine with cores to spare: where does each go?

use std::time::Duration;

use evener_core::Nanos;
use evener_core::estimate::{Estimator, ModuleSample};
use evener_core::plan::adaptive::{ClassInput, CostOnModule, ModuleCapacity, PlanInput, Queue, Route, plan};
use evener_core::{Algorithm, Class, Cost, Direction, Method, Objective};
use evener_sim::random::Random;

use crate::bench::{WORKLOADS, costs, workload};

/// Waking the module's worker; part of what a request waits for.
const WAKE: Nanos = Nanos::from_micros(20);

/// A caller that queries the table for each request and learns from its cost.
struct Caller {
    estimator: Estimator,
    random: Random,
    sizes: Vec<(u64, Cost)>,
    passed: Nanos,
}

impl Caller {
    fn class(&self, at: usize) -> Class {
        let bytes = usize::try_from(self.sizes[at].0).unwrap();
        Class::of(Algorithm::Aes128Cbc, Direction::Encrypt, bytes, false)
    }

    /// Where the next request of a class goes: as the table says, but now and then to the module to get to know it.
    fn route(&mut self, at: usize) -> Route {
        let class = self.class(at);
        let bytes = usize::try_from(self.sizes[at].0).unwrap();
        let tries_left = self.estimator.tries_left(0, class, self.passed);
        let on_module = match self.estimator.on_module(0, class).at(bytes) {
            Some((d, h)) => CostOnModule::Known { d, h, tries_left, is_long_untried: false },
            None => CostOnModule::Unknown { tries_left },
        };
        let class_input =
            ClassInput { c: self.estimator.c(class, bytes, 1), waiting: 1, on_modules: vec![on_module] };
        let table = plan(&PlanInput {
            objective: Objective::Latency,
            cpu_workers: 0,
            share: 1.0,
            lambda: 0.0,
            yields: true,
            capacities: vec![ModuleCapacity { units: 1, depth: 1 }],
            classes: vec![class_input],
        })
        .having_worked(|_| self.estimator.worked(class));
        if table.wants_try(0, 0, 1) {
            assert!(self.estimator.tries(0, class, self.passed), "the plan is of this moment");
            return Route::Module(0);
        }
        table.route(0, &[Queue { wait: WAKE }])
    }

    fn request(&mut self, at: usize) {
        let (class, (bytes, cost)) = (self.class(at), self.sizes[at]);
        let factor = self.random.around_one(0.05);
        let vary = |time: Nanos| Nanos::from(Duration::from(time).mul_f64(factor));
        match self.route(at) {
            Route::Inline => {
                self.passed += vary(cost.c);
                self.estimator.saw_cpu(class, Method::Plain, 1, bytes, vary(cost.c));
            }
            Route::Module(module) => {
                self.passed += WAKE + vary(cost.d) + vary(cost.h);
                let now = self.passed;
                let seen = ModuleSample { jobs: 1, bytes, d: vary(cost.d), h: vary(cost.h), now };
                self.estimator.saw_module(module, class, &seen);
            }
        }
    }
}

#[test]
fn a_caller_with_idle_cores_is_served_as_soon_as_by_the_better_of_core_and_module() {
    for name in WORKLOADS {
        let (jobs, sizes) = (workload(name), costs());
        let mut caller =
            Caller { estimator: Estimator::new(1), random: Random::new(5), sizes, passed: Nanos::ZERO };
        for job in jobs.jobs() {
            caller.request(job.class);
        }
        let all = |time: &dyn Fn(Cost) -> Nanos| -> f64 {
            jobs.jobs().iter().map(|job| time(caller.sizes[job.class].1)).sum::<Nanos>().as_secs_f64()
        };
        let better = all(&|cost| cost.c).min(all(&|cost| WAKE + cost.d + cost.h));
        let ratio = caller.passed.as_secs_f64() / better;
        println!("{name}: {ratio:.4} x the better of core and module");
        assert!(ratio <= 1.02, "{name}: {ratio}");
    }
}
