//! A module: servers in parallel behind one queue, first come, first served, with a fault that comes in time.

use evener_core::Nanos;

/// From when on a module is slower, and how much.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slowdown {
    /// When it begins.
    pub at: Nanos,
    /// How many times as long the work takes from then on, at least 1.
    pub factor: u64,
}

/// What goes wrong with a module, and when.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Faults {
    /// It becomes slow.
    pub slow: Option<Slowdown>,
    /// It goes away: what it holds then and what it gets later fails.
    pub lost_at: Option<Nanos>,
}

/// A kind of module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ModuleSpec {
    /// Requests that it works on at the same time, at least 1.
    pub units: u32,
    /// What goes wrong with it.
    pub faults: Faults,
}

/// A module at work.
pub(super) struct Module {
    faults: Faults,
    /// When each unit has done all it was given.
    free: Vec<u64>,
    /// Start and end of the stretches of work, per unit only the last one; what came before is in `busy`.
    last: Vec<(u64, u64)>,
    busy: u64,
}

impl Module {
    /// # Panics
    ///
    /// Without a unit.
    pub(super) fn new(spec: ModuleSpec) -> Self {
        assert!(spec.units > 0, "a module has a unit");
        let units = spec.units as usize;
        Self { faults: spec.faults, free: vec![0; units], last: vec![(0, 0); units], busy: 0 }
    }

    /// Takes a request for `work` nanoseconds: when it ends, and whether it fails.
    pub(super) fn submit(&mut self, now: u64, work: u64) -> (u64, bool) {
        let unit = (0..self.free.len()).min_by_key(|&unit| self.free[unit]).unwrap_or(0);
        let start = self.free[unit].max(now);
        let end = self.end(start, work);
        let (end, failed) = match self.faults.lost_at {
            Some(lost) if end > lost.0 => (lost.0.max(now), true),
            _ => (end, false),
        };
        let (from, to) = self.last[unit];
        self.busy += to - from;
        self.last[unit] = (start.min(end), end);
        self.free[unit] = end;
        (end, failed)
    }

    /// When `work` that starts at `start` ends, slow-down included.
    fn end(&self, start: u64, work: u64) -> u64 {
        match self.faults.slow {
            Some(slow) if start >= slow.at.0 => start + work * slow.factor,
            Some(slow) if start + work > slow.at.0 => slow.at.0 + (start + work - slow.at.0) * slow.factor,
            _ => start + work,
        }
    }

    /// Work done until `now`, all units together. Of several requests that wait at one unit, those before the
    /// last count in full.
    pub(super) fn busy_until(&self, now: u64) -> Nanos {
        let open = self.last.iter().map(|&(from, to)| to.min(now).saturating_sub(from));
        Nanos(self.busy + open.sum::<u64>())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn module(units: u32, faults: Faults) -> Module {
        Module::new(ModuleSpec { units, faults })
    }

    #[test]
    fn requests_are_served_in_order_by_as_many_units_as_there_are() {
        let mut one = module(1, Faults::default());
        assert_eq!([one.submit(0, 10), one.submit(5, 10), one.submit(50, 1)].map(|end| end.0), [10, 20, 51]);
        let mut two = module(2, Faults::default());
        assert_eq!([two.submit(0, 10), two.submit(0, 4), two.submit(1, 3)].map(|end| end.0), [10, 4, 7]);
        assert_eq!((one.busy_until(60), two.busy_until(60)), (Nanos(21), Nanos(17)));
    }

    #[test]
    fn a_slow_module_is_slow_from_its_hour_on() {
        let slow = Some(Slowdown { at: Nanos(100), factor: 3 });
        let mut module = module(1, Faults { slow, lost_at: None });
        assert_eq!(module.submit(0, 50).0, 50);
        assert_eq!(module.submit(90, 20).0, 130); // 10 before its hour, 10 after
        assert_eq!(module.submit(130, 10).0, 160);
    }

    #[test]
    fn a_lost_module_fails_what_it_holds_at_that_moment() {
        let mut module = module(1, Faults { slow: None, lost_at: Some(Nanos(15)) });
        assert_eq!(module.submit(0, 10), (10, false));
        assert_eq!(module.submit(0, 10), (15, true));
        assert_eq!(module.submit(20, 10), (20, true));
        assert_eq!(module.busy_until(30), Nanos(15));
    }
}
