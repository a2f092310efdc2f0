//! The decisions one by one, on costs of paper 002, table 2 (AES-128), in microseconds.

use super::{
    Choice, ClassInput, CostOnModule, ModuleCapacity, Objective, PlanInput, Queue, Route, Table, all_of_turn,
    cap_percent, plan,
};
use crate::units::Nanos;

/// 1 KiB, 4 KiB, 16 KiB: `c`, `d`, `h`.
const COSTS: [[u64; 3]; 3] = [[84, 160, 25], [291, 213, 101], [1179, 331, 404]];

const SMALL: usize = 0;
const MIDDLE: usize = 1;
const LARGE: usize = 2;

fn known([_, d, h]: [u64; 3]) -> CostOnModule {
    CostOnModule::Known {
        d: Nanos::from_micros(d),
        h: Nanos::from_micros(h),
        tries_left: 0,
        is_long_untried: false,
    }
}

fn class(cost: [u64; 3], waiting: u32) -> ClassInput {
    ClassInput { c: Some(Nanos::from_micros(cost[0])), waiting, on_modules: vec![known(cost)] }
}

/// One core and one module, with so many jobs of each size.
fn plan_input(waiting: [u32; 3]) -> PlanInput {
    PlanInput {
        objective: Objective::Throughput,
        cpu_workers: 1,
        share: 1.0,
        lambda: 1.0,
        yields: true,
        capacities: vec![ModuleCapacity { units: 1, depth: 1 }],
        classes: COSTS.iter().zip(waiting).map(|(&cost, count)| class(cost, count)).collect(),
    }
}

fn core(table: &Table, waiting: [u32; 3]) -> Choice {
    table.core_takes(|class| waiting[class], Nanos::ZERO)
}

fn module(table: &Table, waiting: [u32; 3]) -> Choice {
    table.module_takes(0, |class| waiting[class], Nanos::ZERO)
}

const fn take(class: usize) -> Choice {
    Choice::Take { class, is_try: false }
}

#[test]
fn the_module_begins_with_what_saves_most_and_the_core_with_what_saves_least() {
    let many = [100, 100, 100];
    let table = plan(&plan_input(many));
    assert_eq!((core(&table, many), module(&table, many)), (take(SMALL), take(LARGE)));
    let rest = [0, 100, 0];
    assert_eq!((core(&table, rest), module(&table, rest)), (take(MIDDLE), take(MIDDLE)));
}

#[test]
fn the_module_leaves_what_costs_more_core_time_there() {
    let small = [100, 0, 0];
    let table = plan(&plan_input(small));
    assert_eq!((core(&table, small), module(&table, small)), (take(SMALL), Choice::Leave));
    assert!(!table.is_open(SMALL) && table.is_open(MIDDLE));
    // With a core to spare its time has no price, so the module helps.
    let table = plan(&PlanInput { lambda: 0.0, ..plan_input(small) });
    assert_eq!(module(&table, small), take(SMALL));
}

#[test]
fn at_the_end_the_core_leaves_to_the_module_what_it_would_end_later() {
    let last = [0, 0, 1];
    let table = plan(&plan_input(last));
    assert!(matches!(core(&table, last), Choice::AskAgainIn(_)), "735 us on the module, 1179 on the core");
    assert_eq!(module(&table, last), take(LARGE));
    // Not where the module is busy for longer than the difference.
    let busy = Nanos::from_micros(500);
    assert_eq!(table.core_takes(|class| last[class], busy), take(LARGE));
}

#[test]
fn what_is_unknown_comes_first_on_the_core_and_is_tried_where_much_of_it_waits() {
    let mut unknown = plan_input([10, 10, 10]);
    unknown.classes[LARGE] =
        ClassInput { c: None, waiting: 10, on_modules: vec![CostOnModule::Unknown { tries_left: 4 }] };
    let waiting = [10, 10, 10];
    assert_eq!(core(&plan(&unknown), waiting), take(LARGE));
    unknown.classes[LARGE].c = Some(Nanos::from_micros(1179));
    let table = plan(&unknown);
    assert_eq!(module(&table, waiting), take(MIDDLE), "12 ms of it wait");
    assert_eq!(module(&table, [10, 10, 20]), Choice::Take { class: LARGE, is_try: true });
    let table = table.having_worked(|_| Nanos::from_millis(20));
    assert!(table.wants_try(LARGE, 0, 1) && !table.wants_try(LARGE, 0, 0) && !table.wants_try(MIDDLE, 0, 1));
}

#[test]
fn cores_leave_to_modules_what_these_can_use_all_core_time_for() {
    let many = [0, 100, 0];
    let two = ModuleCapacity { units: 1, depth: 2 };
    let table = plan(&PlanInput { capacities: vec![two], ..plan_input(many) });
    assert!(matches!(core(&table, many), Choice::AskAgainIn(_)), "213 us of the core per turn of 213 us");
    assert_eq!(core(&table, [5, 100, 0]), take(SMALL));
    // One outstanding leaves the core a third of the time; beside another program, nothing of its fair half.
    assert_eq!(core(&plan(&plan_input(many)), many), take(MIDDLE));
    let shared = plan(&PlanInput { share: 0.5, ..plan_input(many) });
    assert!(matches!(core(&shared, many), Choice::AskAgainIn(_)));
}

#[test]
fn what_a_path_takes_the_only_core_for_by_itself_is_left_to_it_to_the_last_job() {
    // 8 ms of the core for each, of which eight are outstanding, and 68 ms without the module.
    let class = class([68_000, 8_000, 64_000], 16);
    let capacities = vec![ModuleCapacity { units: 8, depth: 8 }];
    let table = plan(&PlanInput { yields: false, capacities, classes: vec![class], ..plan_input([0; 3]) });
    for waiting in 1..=40 {
        let core = table.core_takes(|_| waiting, Nanos::ZERO);
        assert!(matches!(core, Choice::AskAgainIn(_)), "{waiting}: {core:?}");
        // Nor does the module leave it to the core, and no worker would do it.
        assert_eq!(table.module_takes(0, |_| waiting, Nanos::ZERO), take(0), "{waiting}");
    }
}

#[test]
fn cores_that_do_not_give_way_leave_to_a_module_what_it_does_faster_without_them() {
    let many = [0, 0, 100];
    let takes = |yields, cost: [u64; 3], waiting| {
        let classes = vec![class(COSTS[SMALL], 0), class(COSTS[MIDDLE], 0), class(cost, 100)];
        let capacities = vec![ModuleCapacity { units: 1, depth: 2 }];
        core(&plan(&PlanInput { yields, capacities, classes, ..plan_input(many) }), waiting)
    };
    let rests = |choice| matches!(choice, Choice::AskAgainIn(_));
    // 404 us alone. With half of the core each, 1 / (0.5 / 331 + 0.5 / 1179) = 517; if the core gives way, 380.
    assert!(rests(takes(false, COSTS[LARGE], many)));
    assert_eq!(takes(true, COSTS[LARGE], many), take(LARGE));
    // 252 us alone; with half of the core each 259 or 238, as the path takes 230 or 200 of it.
    assert!(rests(takes(false, [295, 230, 252], many)));
    assert_eq!(takes(false, [295, 200, 252], many), take(LARGE));
    // What the module does not do for less is the core's.
    assert_eq!(takes(false, COSTS[LARGE], [5, 0, 100]), take(SMALL));
}

#[test]
fn own_cores_give_way_where_the_module_pays_and_less_so_beside_other_programs() {
    let middle = plan_input([0, 10, 0]);
    assert_eq!(plan(&middle).core_nice(), 19);
    assert_eq!(plan(&PlanInput { share: 0.5, ..middle.clone() }).core_nice(), 3);
    assert_eq!(plan(&PlanInput { lambda: 0.0, ..middle }).core_nice(), 0);
    let closed = PlanInput { classes: vec![class(COSTS[SMALL], 10)], ..plan_input([0; 3]) };
    assert_eq!(plan(&closed).core_nice(), 0);
}

#[test]
fn beside_one_other_program_nobody_takes_much_more_than_half() {
    assert_eq!(Objective::ALL.map(|objective| cap_percent(objective, 0.5)), [70, 70, 50]);
    assert_eq!(cap_percent(Objective::Throughput, 1.0), 100);
}

#[test]
fn a_request_goes_where_waiting_serving_and_the_price_of_core_time_are_least() {
    let table = plan(&PlanInput { lambda: 0.0, ..plan_input([0; 3]) });
    let at = |wait: u64| [Queue { wait: Nanos::from_micros(wait) }];
    assert_eq!(table.route(LARGE, &at(0)), Route::Module(0));
    assert_eq!(table.route(LARGE, &at(450)), Route::Inline, "735 + 450 us against 1179");
    assert_eq!(table.route(SMALL, &at(0)), Route::Inline);
    let dear = plan(&plan_input([0; 3]));
    assert_eq!(dear.route(LARGE, &at(450)), Route::Module(0), "848 us of core time saved");
}

#[test]
fn a_fleet_is_used_though_each_of_its_modules_adds_little_to_many_cores() {
    let fleet = |modules: usize, cost: [u64; 3]| PlanInput {
        cpu_workers: 256,
        capacities: vec![ModuleCapacity { units: 1, depth: 2 }; modules],
        classes: vec![ClassInput { on_modules: vec![known(cost); modules], ..class(cost, 10_000) }],
        ..plan_input([0; 3])
    };
    // 16 KiB: a module does 2.9 times what a core does, 1.1 % of what 256 cores do; 64 of them do 73 %.
    assert!(!plan(&fleet(1, COSTS[LARGE])).is_open(0), "one is not worth a thread that wakes");
    assert!(plan(&fleet(64, COSTS[LARGE])).is_open(0));
    // Modules of which each does 2 % of one core are worth none, however many they are.
    assert!(!plan(&fleet(64, [1179, 331, 60_000])).is_open(0));
}

#[test]
fn for_latency_one_request_goes_where_it_ends_first_and_for_throughput_where_it_costs_least() {
    let route = |objective, h| {
        let classes = vec![class([1179, 331, h], 1)];
        plan(&PlanInput { objective, classes, ..plan_input([0; 3]) }).route(0, &[Queue::default()])
    };
    // On the module it ends after 735 or 1300 us and takes 331 of the core; on the core both are 1179.
    assert_eq!([404, 969].map(|h| route(Objective::Throughput, h)), [Route::Module(0); 2]);
    assert_eq!([404, 969].map(|h| route(Objective::Latency, h)), [Route::Module(0), Route::Inline]);
    // Of two that end at the same time the cheaper one is taken.
    assert_eq!(route(Objective::Latency, 848), Route::Module(0));
}

#[test]
fn a_module_that_lost_is_not_tried_again_with_the_last_job_but_once_in_a_long_while() {
    let again = |waiting: u32, is_long_untried: bool| {
        let (cost, [d, h]) = ([84, 160, 25], [160, 25].map(Nanos::from_micros));
        let on_module = CostOnModule::Known { d, h, tries_left: 1, is_long_untried };
        let classes = vec![ClassInput { waiting, on_modules: vec![on_module], ..class(cost, waiting) }];
        let table =
            plan(&PlanInput { classes, ..plan_input([0; 3]) }).having_worked(|_| Nanos::from_millis(100));
        table.module_takes(0, |_| waiting, Nanos::ZERO)
    };
    let tried = Choice::Take { class: 0, is_try: true };
    assert_eq!(again(100, false), tried);
    // The core has done two in 168 us, the module one in 185.
    assert_eq!([again(2, false), again(2, true)], [Choice::Leave, tried]);
}

#[test]
fn a_path_that_leaves_little_of_the_only_core_takes_all_of_it() {
    let of = |d: u64, h: u64, depth| all_of_turn(Nanos(d), Nanos(h), depth).0;
    assert_eq!([of(180, 690, 2), of(400, 690, 2), of(170, 690, 2)], [345, 400, 170]);
    assert_eq!([of(300, 299, 1), of(300, 301, 1)], [599, 300]);
}
