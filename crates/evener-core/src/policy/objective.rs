//! What a plan is to be good at.

use crate::named::names;

crate::named! {
    /// What is to be least when a policy chooses between cores and modules.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
    pub enum Objective {
        /// The finish of the last job.
        #[default]
        Throughput = "throughput",
        /// The time that one request waits.
        Latency = "latency",
        /// The core time that is taken from other programs.
        Cpu = "cpu",
    }
}

names!(Objective, "objective", UnknownObjective);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_objective_is_found_by_its_name_and_no_other_is() {
        let named = ["throughput", "latency", "cpu"].map(|name| name.parse::<Objective>());
        assert_eq!(named, [Objective::Throughput, Objective::Latency, Objective::Cpu].map(Ok));
        assert_eq!(Objective::ALL.map(|objective| objective.to_string()), ["throughput", "latency", "cpu"]);
        let unknown = "speed".parse::<Objective>().unwrap_err();
        assert_eq!(unknown.to_string(), "unknown objective \"speed\"; known are throughput, latency, cpu");
        assert_eq!(Objective::default(), Objective::Throughput);
    }
}
