//! Shares of a burst: each queued client takes its share in its turn, by its weight, and while the burst has space those who have more take another.
//!
//! Deficit round robin (Shreedhar and Varghese, SIGCOMM 1995), counted in requests, where there are several users a long one as several: whose share ends with the burst goes on in the next one, before all others,
//! with what is left of it. So clients that always have more get as much as their weights say, however small a burst is.

use crate::module::Quota;
use crate::service::run_queue::RunQueue;

/// Serves the clients of `queue` as far as `quota` goes; says how many requests were taken, as the quota counts them. `about` tells number and weight of a client; `serve` takes so many of its
/// requests at most (the last one may count as more than is left), queues or parks it, and says how many it took.
pub(crate) fn take_turns<S, C: Clone>(
    server: &mut S,
    queue: impl Fn(&mut S) -> &mut RunQueue<C>,
    about: impl Fn(&C) -> (u64, usize),
    quota: Quota,
    takes_more: bool,
    mut serve: impl FnMut(&mut S, &C, usize) -> usize,
) -> usize {
    let mut left = quota.all;
    loop {
        let before = left;
        for _ in 0..queue(server).queued() {
            let next = if left > 0 { queue(server).next() } else { None };
            let Some(client) = next else { break };
            let (id, weight) = about(&client);
            let share = queue(server).share(id, quota.each.saturating_mul(weight));
            let taken = serve(server, &client, share.min(left));
            left = left.saturating_sub(taken);
            queue(server).end_turn(id, share.saturating_sub(taken), left == 0);
        }
        if left == 0 || left == before || !takes_more {
            break;
        }
    }
    quota.all - left
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::service::run_queue::ClientState;

    /// Clients that are not there: what each has, what it was given, and what comes to it after each burst.
    struct Simulated {
        queue: RunQueue<u64>,
        clients: Vec<SimulatedClient>,
    }

    struct SimulatedClient {
        weight: usize,
        waiting: usize,
        served: usize,
        comes: usize,
        /// As how many each of its requests counts.
        units: usize,
    }

    /// As [`core`] or [`module`].
    type BoxedQuota = Box<dyn Fn(usize) -> Quota>;

    const ALWAYS: usize = 1_000;

    impl Simulated {
        fn new(all: &[(usize, usize)]) -> Self {
            Self::of_users(all, |_| 7)
        }

        /// The same, of the user that `users` says.
        fn of_users(all: &[(usize, usize)], users: impl Fn(u64) -> u32) -> Self {
            let client =
                |&(weight, comes)| SimulatedClient { weight, waiting: 0, served: 0, comes, units: 1 };
            let mut queue = RunQueue::new(usize::MAX);
            (0..).zip(all).for_each(|(id, _)| queue.add(id, users(id), id));
            Self { queue, clients: all.iter().map(client).collect() }
        }

        fn client(&mut self, id: u64) -> &mut SimulatedClient {
            &mut self.clients[usize::try_from(id).unwrap()]
        }

        /// One burst after the other, of so many requests, with shares as a core has them or a module.
        fn run(&mut self, bursts: usize, quota: impl Fn(usize) -> Quota) {
            for _ in 0..bursts {
                for (id, client) in (0..).zip(&mut self.clients) {
                    client.waiting = (client.waiting + client.comes).min(ALWAYS);
                    if client.waiting > 0 {
                        self.queue.enqueue(id);
                    }
                }
                let weights: Vec<usize> = self.clients.iter().map(|client| client.weight).collect();
                let about = |id: &u64| (*id, weights[usize::try_from(*id).unwrap()]);
                let quota = quota(self.queue.queued());
                take_turns(
                    self,
                    |all| &mut all.queue,
                    about,
                    quota,
                    true,
                    |all, &id, most| {
                        let client = all.client(id);
                        let taken = client.waiting.min(most.div_ceil(client.units));
                        client.waiting -= taken;
                        client.served += taken;
                        let units = taken * client.units;
                        match client.waiting {
                            0 => all.queue.park(id, ClientState::Asleep),
                            _ => all.queue.enqueue(id),
                        }
                        units
                    },
                );
            }
        }

        fn served(&self) -> Vec<usize> {
            self.clients.iter().map(|client| client.served).collect()
        }
    }

    /// As `ModuleRunner::quota` of a core of that width.
    fn core(width: usize) -> impl Fn(usize) -> Quota {
        move |clients| Quota {
            unit_bytes: 16_384,
            ..Quota::whole(width, width.div_ceil(clients.clamp(1, 4)))
        }
    }

    /// As that of a module with a queue.
    fn module(clients: usize) -> Quota {
        Quota::whole(clients, 1)
    }

    #[test]
    fn clients_that_always_have_more_are_served_as_their_weights_say_to_one_in_a_hundred() {
        for weights in [&[1, 1][..], &[1, 3], &[3, 1], &[1, 2, 5], &[1, 1, 1], &[7, 1, 1, 1, 1, 2], &[4; 9]] {
            let all: Vec<(usize, usize)> = weights.iter().map(|weight| (*weight, ALWAYS)).collect();
            let kinds: [(&str, BoxedQuota); 3] = [
                ("16 lanes", Box::new(core(16))),
                ("8 lanes", Box::new(core(8))),
                ("a queue", Box::new(module)),
            ];
            for (kind, quota) in kinds {
                let mut simulated = Simulated::new(&all);
                simulated.run(10_000, quota);
                let (served, sum) = (simulated.served(), weights.iter().sum::<usize>());
                let total: usize = served.iter().sum();
                for (served, weight) in served.iter().zip(weights) {
                    let due = total * weight / sum;
                    assert!(
                        served.abs_diff(due) <= due / 100,
                        "{kind}: {weight} of {weights:?} had {served}, not {due}"
                    );
                }
            }
        }
    }

    #[test]
    fn what_a_client_does_not_want_goes_to_the_others_and_is_not_kept_for_it() {
        // The first wants one of a burst of 16, though two thirds are its own.
        let mut simulated = Simulated::new(&[(2, 1), (1, ALWAYS)]);
        simulated.run(1_000, core(16));
        assert_eq!(simulated.served(), [1_000, 15_000]);
        // From now on it wants all that it may have: two of three, and nothing for the time before.
        simulated.client(0).comes = ALWAYS;
        simulated.run(3_000, core(16));
        let served = simulated.served()[0] - 1_000;
        assert!(served.abs_diff(32_000) <= 64, "{served}");
    }

    #[test]
    fn nobody_waits_longer_than_the_shares_of_all_others_take() {
        let mut all = vec![(1, ALWAYS); 100];
        all[0].0 = 50;
        let mut simulated = Simulated::new(&all);
        // Shares of 4 and one of 200: 596 requests, in bursts of 16.
        simulated.run(596_usize.div_ceil(16) + 1, core(16));
        assert!(simulated.served().iter().all(|served| *served >= 4), "{:?}", simulated.served());
    }

    #[test]
    fn one_client_of_a_user_has_as_much_as_64_of_another_and_waits_for_one_burst() {
        for (kind, quota) in [("lanes", Box::new(core(16)) as BoxedQuota), ("a queue", Box::new(module))] {
            let mut all = vec![(1, ALWAYS); 64];
            all.push((1, 4));
            let mut simulated = Simulated::of_users(&all, |id| u32::from(id == 64));
            for burst in 1..=1_000 {
                simulated.run(1, &quota);
                // Four come to it with each burst, and some of them are done in it.
                assert!(simulated.served()[64] >= burst, "{kind}, burst {burst}");
            }
            let (good, others) = (simulated.served()[64], simulated.served()[..64].iter().sum::<usize>());
            let least = if kind == "lanes" { 4 * 1_000 - 8 } else { others / 64 };
            assert!(good >= least && others > 0, "{kind}: {good} beside {others}");
        }
    }

    #[test]
    fn a_user_of_short_requests_waits_in_each_burst_for_one_long_one_of_another_at_most() {
        const LONG: usize = 32;
        let mut all = vec![(1, ALWAYS); 64];
        all.push((1, 1));
        let mut simulated = Simulated::of_users(&all, |id| u32::from(id == 64));
        simulated.clients[..64].iter_mut().for_each(|client| client.units = LONG);
        let long_ones = |simulated: &Simulated| simulated.served()[..64].iter().sum::<usize>();
        let mut longest_wait = 0;
        for _ in 0..1_000 {
            let (before, good) = (long_ones(&simulated), simulated.served()[64]);
            simulated.run(1, core(16));
            assert!(long_ones(&simulated) - before <= 1, "a burst has one long request");
            longest_wait = if simulated.served()[64] > good { 0 } else { longest_wait + 1 };
            assert!(longest_wait <= 1, "it stood behind more than one turn of the other user");
        }
    }

    /// Jain's index: 1 where all have as much.
    fn jain_index(served: &[usize]) -> f64 {
        let (sum, squares) =
            served.iter().fold((0.0, 0.0), |(sum, squares), &n| (sum + n as f64, squares + (n * n) as f64));
        sum * sum / (served.len() as f64 * squares)
    }

    #[test]
    fn equal_clients_have_as_much_of_a_module_and_of_a_core_at_8_64_and_512() {
        for clients in [8, 64, 512] {
            let kinds: [(&str, BoxedQuota); 2] =
                [("lanes", Box::new(core(16))), ("a queue", Box::new(module))];
            for (kind, quota) in kinds {
                // Some have four requests at a time, as the bench's processes, and some whatever there is space for.
                let all: Vec<_> = (0..clients).map(|id| (1, if id % 2 == 0 { 4 } else { ALWAYS })).collect();
                let mut simulated = Simulated::new(&all);
                // Ten shares of four of each, and some more.
                simulated.run(clients * 40 / 16 + 3, quota);
                let index = jain_index(&simulated.served());
                assert!(index >= 0.98, "{kind}, {clients} clients: {index}");
            }
        }
    }
}
