//! Ranges of one object by several processes, against servers that are not ours: the object is there once and whole, or not at all, whatever machine is
//! killed, comes twice, late or with other keys. The crate `age` seals what is opened; what is sealed is opened by a run over whole objects.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test")]

mod support;

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::atomic::Ordering;
use std::{fs, mem, thread};

use evener_files::keyset::{Keyset, Template};
use evener_shards::{Ask, Direction, Existing, Keys, Plan, Planning, Ranged, ShardRun, Wanted};
use evener_testing::programs::skipped;
use evener_testing::{Folder, noise};
use support::faults::{Faults, start, start_held, start_held_at};
use support::of_each;
use support::server::{Kind, Server};
use support::{Person, Tree, ended_with, folder, plan_of, planning, program, read, report, shard};

of_each! {
    s3: S3, google: Google;
    {
        ranges_in_any_order_twice_and_at_once_are_together_the_object_that_one_machine_makes
        ranges_go_through_a_store_that_is_busy
        a_source_that_has_changed_since_the_plan_is_named_and_nothing_is_left
        a_text_that_was_cut_off_between_segments_is_found_out_by_the_last_range
        who_comes_with_other_keys_waits_for_nobody
        what_cannot_be_shared_is_done_whole_by_its_first_range
        a_plan_cuts_what_outweighs_a_shard_and_each_object_is_done_once
        notes_are_no_objects_of_a_source
    }
}

// By one of both interfaces, for each costs a hundred processes.
of_each! {
    s3_at_any_request: S3;
    {
        a_range_that_is_killed_is_done_by_the_next_run
        an_upload_that_is_ended_is_begun_anew_by_who_finds_out
    }
}

/// For a hundred processes, by a server that takes its time for each request.
const TOO_SLOW: &str = "it takes minutes by moto; versitygw is quicker";

/// Three parts, the last one short.
const BYTES: usize = 18_000_000;

/// One object, which is sealed or opened in three ranges.
struct Case<'s> {
    server: &'s Server,
    place: Folder,
    plan: PathBuf,
    keys: Keys,
    /// What the output is to be, opened where it is a sealed one.
    plain: Vec<u8>,
    direction: Direction,
}

impl<'s> Case<'s> {
    /// What the crate `age` sealed is opened.
    fn opening(server: &'s Server) -> Self {
        let (place, person, plain) = (folder(), Person::new(), noise(3, BYTES));
        fs::write(place.join("identity"), &person.text).unwrap();
        let keys = Keys { identities: vec![place.join("identity")], ..Keys::default() };
        server.put("from", &[("a/object".to_owned(), sealed_by_age(&person, &plain))].into());
        Self::new(server, place, keys, plain, Direction::Decrypt)
    }

    /// Plaintext is sealed in the Tink format.
    fn sealing(server: &'s Server) -> Self {
        let (place, plain) = (folder(), noise(4, BYTES));
        let keyset = Keyset::generate("AES256_GCM_HKDF_1MB".parse::<Template>().unwrap()).unwrap();
        fs::write(place.join("key.json"), keyset.to_json()).unwrap();
        let keys = Keys { key: Some(place.join("key.json")), ..Keys::default() };
        server.put("from", &[("a/object".to_owned(), plain.clone())].into());
        Self::new(server, place, keys, plain, Direction::Encrypt)
    }

    fn new(server: &'s Server, place: Folder, keys: Keys, plain: Vec<u8>, direction: Direction) -> Self {
        let plan = place.join("plan.json");
        let case = Self { server, place, plan, keys, plain, direction };
        case.plan_to(&server.place("to"), 3);
        case
    }

    /// Makes the plan: as `evener plan` does, but cut although the object is small.
    fn plan_to(&self, destination: &str, count: u32) {
        let planned = planning(&self.server.place("from"), destination, Wanted::Shards(1), &self.plan);
        let planned = Planning { direction: self.direction, force: true, ..planned };
        ended_with(0, self.at(self.server.port, &Ask::Plan(planned)));
        let (name, state) = self.server.states("from").pop_first().unwrap();
        let tag = state.split_once("<ETag>").unwrap().1.split('<').next().unwrap();
        let tag = tag.replace("&quot;", "\"").replace("&#34;", "\"");
        let bytes = self.server.read("from")[&name].len() as u64;
        let ranged = vec![Ranged { name, bytes, tag, count }];
        fs::write(&self.plan, Plan { shards: Vec::new(), ranged, ..plan_of(&self.plan) }.written()).unwrap();
    }

    fn at(&self, port: u16, ask: &Ask) -> Command {
        let mut command = program(ask);
        command.envs(self.server.environment(port));
        command
    }

    /// The command for a range, by the server's port or a proxy's.
    fn range_at(&self, port: u16, number: u32) -> Command {
        let run = ShardRun { timeout_s: 20, ..shard(&self.plan, number, self.keys.clone()) };
        self.at(port, &Ask::RunShard(run))
    }

    /// Does a range: lines of objects, and the last one.
    #[track_caller]
    fn range(&self, status: i32, number: u32) -> (BTreeMap<String, serde_json::Value>, serde_json::Value) {
        report(&ended_with(status, self.range_at(self.server.port, number)))
    }

    /// The output is there, once and whole, and nothing else.
    #[track_caller]
    fn is_whole(&self) {
        let mut outputs = self.server.read("to");
        assert_eq!(outputs.keys().collect::<Vec<_>>(), ["a/object"], "and no notes");
        let output = outputs.remove("a/object").unwrap();
        let output = if self.direction == Direction::Encrypt { self.opened_whole() } else { output };
        assert!(output == self.plain);
    }

    /// What a run over whole objects makes of the output.
    fn opened_whole(&self) -> Vec<u8> {
        let (plan, opened) = (self.place.join("back.json"), self.place.join("opened"));
        let back = planning(&self.server.place("to"), opened.to_str().unwrap(), Wanted::Shards(1), &plan);
        let back = Planning { direction: Direction::Decrypt, ..back };
        ended_with(0, self.at(self.server.port, &Ask::Plan(back)));
        ended_with(0, self.at(self.server.port, &Ask::RunShard(shard(&plan, 0, self.keys.clone()))));
        let output = read(&opened).remove("a/object").unwrap();
        fs::remove_dir_all(opened).unwrap();
        output
    }

    /// Takes the output and all notes away.
    fn begin_anew(&self) {
        for name in self.server.states("to").keys() {
            self.server.remove(&format!("to/{name}"));
        }
    }

    /// Ends all uploads that agreements name, as a rule of a bucket does.
    fn end_uploads(&self) {
        let notes = self.server.read("to").into_iter().filter(|(name, _)| name.starts_with(".evener/"));
        for (_, note) in notes {
            let note: serde_json::Value = serde_json::from_slice(&note).unwrap();
            self.server.end_upload("to/a/object", note["upload"].as_str().unwrap());
        }
    }
}

fn sealed_by_age(person: &Person, plain: &[u8]) -> Vec<u8> {
    let recipient: age::x25519::Recipient = person.recipient.parse().unwrap();
    let recipients = std::iter::once(&recipient as &dyn age::Recipient);
    let mut file = Vec::new();
    let mut writer = age::Encryptor::with_recipients(recipients).unwrap().wrap_output(&mut file).unwrap();
    writer.write_all(plain).unwrap();
    writer.finish().unwrap();
    file
}

fn both(server: &Server, body: impl Fn(&Case<'_>)) {
    for case in [Case::opening, Case::sealing] {
        let case = case(server);
        body(&case);
        case.begin_anew();
    }
}

fn ranges_in_any_order_twice_and_at_once_are_together_the_object_that_one_machine_makes(server: &Server) {
    if server.is_moto {
        return skipped(TOO_SLOW);
    }
    both(server, |case| {
        let mut headers = BTreeSet::new();
        for order in [[0, 1, 2], [2, 0, 1], [1, 2, 0]] {
            let mut made = [0; 3];
            for (at, number) in order.into_iter().enumerate() {
                let (objects, totals) = case.range(0, number);
                let outcome = if at == 2 { "done" } else { "range-done" };
                assert_eq!(objects["a/object"]["outcome"], outcome, "{totals}");
                assert_eq!(
                    (&totals["objects"], &totals["done"]),
                    (&u64::from(at == 2).into(), &u64::from(at == 2).into())
                );
                made[at] = totals["bytes_out"].as_u64().unwrap();
                // The same again does nothing: neither a part nor a receipt is sent twice.
                let (port, counts) = start(server.port, Faults { refused: 0, cut: 0 }, 0);
                let again = report(&ended_with(0, case.range_at(port, number))).1;
                assert_eq!((&again["done"], &again["bytes_out"]), (&0.into(), &0.into()), "{again}");
                assert_eq!(counts.uploads.load(Ordering::Relaxed), 0);
            }
            case.is_whole();
            let output = server.read("to").remove("a/object").unwrap();
            assert_eq!(made.iter().sum::<u64>(), output.len() as u64);
            let is_new = headers.insert(output[..40].to_vec());
            assert!(is_new || case.direction == Direction::Decrypt, "no two uploads have a header in common");
            let before = server.states("to");
            let (_, totals) = case.range(0, 0);
            assert_eq!((&totals["already_done"], &totals["objects"]), (&1.into(), &1.into()));
            assert_eq!(case.range(0, 1).1["objects"], 0, "an object is counted once");
            assert_eq!(server.states("to"), before);
            case.begin_anew();
        }
        let run = |number: u32| case.range_at(server.port, number % 3).stdout(Stdio::null()).spawn().unwrap();
        for mut run in (0..6).map(run).collect::<Vec<_>>() {
            assert!(run.wait().unwrap().success());
        }
        case.is_whole();
    });
}

fn a_range_that_is_killed_is_done_by_the_next_run(server: &Server) {
    if server.is_moto {
        return skipped(TOO_SLOW);
    }
    // The first one begins the upload, the last one completes it.
    is_done_by_the_next_run(&Case::sealing(server), 0, &[], &[0, 1, 2]);
    is_done_by_the_next_run(&Case::opening(server), 2, &[0, 1], &[2, 1]);
}

/// Kills a range, behind some others and before some.
fn is_done_by_the_next_run(case: &Case<'_>, killed: u32, before: &[u32], then: &[u32]) {
    let mut kills = 0;
    for request in 0.. {
        before.iter().for_each(|number| drop(case.range(0, *number)));
        let (port, held) = start_held_at(case.server.port, request);
        let mut run = case.range_at(port, killed).stdout(Stdio::null()).spawn().unwrap();
        let is_reached = held.or_ended(&mut run);
        run.kill().unwrap();
        run.wait().unwrap();
        kills += u32::from(is_reached);
        // The request never goes on.
        mem::forget(held);
        let made = case.server.read("to").remove("a/object");
        let is_sound = |output| case.direction == Direction::Encrypt || output == case.plain;
        assert!(made.is_none_or(is_sound), "what has a name is whole");
        // Who comes next does the rest and takes away what the killed one left.
        then.iter().for_each(|number| drop(case.range(0, *number)));
        case.is_whole();
        case.begin_anew();
        if !is_reached {
            break;
        }
    }
    assert!(kills > 8, "{kills}");
}

fn an_upload_that_is_ended_is_begun_anew_by_who_finds_out(server: &Server) {
    if server.is_moto {
        return skipped(TOO_SLOW);
    }
    let case = Case::sealing(server);
    for request in 0.. {
        // The first has ended well and does not come again.
        case.range(0, 0);
        let (port, held) = start_held_at(server.port, request);
        let mut run = case.range_at(port, 1).stdout(Stdio::null()).spawn().unwrap();
        let is_reached = held.or_ended(&mut run);
        case.end_uploads();
        held.go_on();
        assert!(run.wait().unwrap().success());
        case.range(0, 2);
        case.is_whole();
        case.begin_anew();
        if !is_reached {
            break;
        }
    }
}

fn ranges_go_through_a_store_that_is_busy(server: &Server) {
    both(server, |case| {
        let (port, counts) = start(server.port, Faults { refused: 150, cut: 100 }, 7);
        let erred = || [&counts.refused, &counts.cut].map(|count| count.load(Ordering::Relaxed));
        // Few requests can be cut off: it is a matter of luck when the first one is.
        for round in (0..20).take_while(|round| *round < 3 || erred()[1] == 0) {
            let run = |number| case.range_at(port, number).stdout(Stdio::null()).spawn().unwrap();
            for mut run in (0..3).map(run).collect::<Vec<_>>() {
                assert!(run.wait().unwrap().success(), "round {round}");
            }
            assert_eq!(case.range(0, 1).1["failed"], 0);
            case.is_whole();
            case.begin_anew();
        }
        let [refused, cut] = erred();
        assert!(refused > 5 && cut > 0, "the proxy has erred: {refused}, {cut}");
    });
}

fn a_source_that_has_changed_since_the_plan_is_named_and_nothing_is_left(server: &Server) {
    both(server, |case| {
        case.range(0, 0);
        let mut other = server.read("from").remove("a/object").unwrap();
        other[5_000_000] ^= 1;
        // It is what the second range will read, before that has read anything or after its first read.
        let (port, held) = start_held(server.port, "GET ", "object");
        thread::scope(|scope| {
            let run = scope.spawn(|| report(&ended_with(2, case.range_at(port, 1))));
            held.after(|| server.put("from", &[("a/object".to_owned(), other.clone())].into()));
            let (objects, totals) = run.join().unwrap();
            assert!(objects["a/object"]["error"].as_str().unwrap().contains("plan again"), "{objects:?}");
            assert_eq!((&totals["failed"], &totals["try_again"]), (&1.into(), &0.into()));
        });
        assert_eq!(server.states("to").len(), 0);
        for number in 0..3 {
            case.range(2, number);
        }
        assert_eq!(server.states("to").len(), 0);
        server.remove("from/a/object");
        assert!(case.range(2, 1).0["a/object"]["error"].as_str().unwrap().contains("plan again"));
    });
}

fn a_text_that_was_cut_off_between_segments_is_found_out_by_the_last_range(server: &Server) {
    let case = Case::opening(server);
    let mut file = server.read("from").remove("a/object").unwrap();
    // Behind the header, 16 bytes of nonce and segments of 64 KiB and a tag each.
    let last = (BYTES % (64 << 10)) + 16;
    file.truncate(file.len() - last);
    server.put("from", &[("a/object".to_owned(), file)].into());
    case.plan_to(&server.place("to"), 3);
    for order in [[0, 1, 2], [2, 1, 0]] {
        for number in order {
            let (objects, totals) = case.range(if number == 2 { 2 } else { 0 }, number);
            if number == 2 {
                assert!(
                    objects["a/object"]["error"].as_str().unwrap().contains("not authentic"),
                    "{objects:?}"
                );
                assert_eq!(totals["try_again"], 0);
            }
        }
        assert!(!server.states("to").contains_key("a/object"));
        case.end_uploads();
        case.begin_anew();
    }
}

fn who_comes_with_other_keys_waits_for_nobody(server: &Server) {
    let mut case = Case::opening(server);
    case.range(0, 0);
    let own = case.keys.clone();
    // Its outputs have another mark, and the first one's parts are of no use for these.
    fs::write(case.place.join("another"), Person::new().text).unwrap();
    case.keys.identities.push(case.place.join("another"));
    assert_eq!(case.range(0, 1).1["done"], 1);
    case.is_whole();
    case.keys = own;
    let (objects, _) = case.range(2, 2);
    assert!(objects["a/object"]["error"].as_str().unwrap().contains("--update"), "{objects:?}");
    let again = ShardRun { existing: Existing::Update, ..shard(&case.plan, 2, case.keys.clone()) };
    ended_with(0, case.at(server.port, &Ask::RunShard(again)));
}

fn what_cannot_be_shared_is_done_whole_by_its_first_range(server: &Server) {
    let mut case = Case::sealing(server);
    let (tink, person) = (case.keys.clone(), Person::new());
    // The age format has a key for each file.
    case.keys = person.as_recipient();
    assert_eq!(case.range(0, 1).1["objects"], 0);
    assert!(server.read("to").is_empty());
    assert_eq!(case.range(0, 0).1["done"], 1);
    assert!(person.opens(&server.read("to")["a/object"]) == case.plain);
    case.begin_anew();
    // A directory has no uploads.
    case.keys = tink;
    case.plan_to(case.place.join("to").to_str().unwrap(), 3);
    let outcomes: Vec<_> = (0..3).map(|number| case.range(0, number).1["done"].as_u64().unwrap()).collect();
    assert_eq!((outcomes, read(&case.place.join("to")).len()), (vec![1, 0, 0], 1));
    // A weak tag promises no bytes.
    case.plan_to(&server.place("to"), 3);
    let plan = plan_of(&case.plan);
    let ranged = plan.ranged.iter().map(|one| Ranged { tag: format!("W/{}", one.tag), ..one.clone() });
    fs::write(&case.plan, Plan { ranged: ranged.collect(), ..plan }.written()).unwrap();
    assert_eq!(case.range(0, 1).1["objects"], 0);
    assert!(server.read("to").is_empty());
}

fn a_plan_cuts_what_outweighs_a_shard_and_each_object_is_done_once(server: &Server) {
    let (place, identity) = (folder(), Person::new());
    fs::write(place.join("identity"), &identity.text).unwrap();
    let keys = Keys { identities: vec![place.join("identity")], ..Keys::default() };
    let plain: Tree = [("a", 1000), ("large", 140_000_000), ("z", 9_000_000)]
        .map(|(name, bytes)| (name.to_owned(), noise(9, bytes)))
        .into();
    let sealed = plain.iter().map(|(name, plain)| (name.clone(), sealed_by_age(&identity, plain)));
    server.put("sealed", &sealed.collect());
    let plan = place.join("plan.json");
    let planned = |no_ranges: bool, destination: &str| {
        let planned = planning(&server.place("sealed"), destination, Wanted::Shards(3), &plan);
        let ask = Ask::Plan(Planning { direction: Direction::Decrypt, no_ranges, force: true, ..planned });
        ended_with(0, at(server, &ask));
        plan_of(&plan)
    };
    // Neither where that is not wished nor where it cannot be.
    assert_eq!(planned(true, &server.place("opened")).ranged, []);
    assert_eq!(planned(false, place.join("opened").to_str().unwrap()).ranged, []);
    let made = planned(false, &server.place("opened"));
    let cut: Vec<_> = made.ranged.iter().map(|one| (one.name.as_str(), one.count)).collect();
    assert_eq!((cut, made.shard_count()), (vec![("large", 2)], 3));
    assert_eq!(planned(false, &server.place("opened")), made, "the same again");
    let mut sum = [0; 2];
    for number in 0..3 {
        let (_, totals) =
            report(&ended_with(0, at(server, &Ask::RunShard(shard(&plan, number, keys.clone())))));
        sum = [sum[0] + totals["objects"].as_u64().unwrap(), sum[1] + totals["done"].as_u64().unwrap()];
    }
    assert_eq!(sum, [3, 3]);
    assert!(server.read("opened") == plain);
}

fn at(server: &Server, ask: &Ask) -> Command {
    let mut command = program(ask);
    command.envs(server.environment(server.port));
    command
}

fn notes_are_no_objects_of_a_source(server: &Server) {
    let case = Case::sealing(server);
    case.range(0, 0);
    assert_eq!(server.states("to").len(), 2, "an agreement and a receipt");
    let plan = case.place.join("none.json");
    let planned = planning(&server.place("to"), &server.place("again"), Wanted::Shards(2), &plan);
    ended_with(0, at(server, &Ask::Plan(planned)));
    assert_eq!(plan_of(&plan).shard_count(), 0);
    server.put("to", &[("other".to_owned(), b"text".to_vec())].into());
    let planned = planning(&server.place("to"), &server.place("again"), Wanted::Shards(2), &plan);
    ended_with(0, at(server, &Ask::Plan(planned)));
    let run = shard(&plan, 0, Person::new().as_recipient());
    assert_eq!(report(&ended_with(0, at(server, &Ask::RunShard(run)))).1["objects"], 1);
    assert_eq!(server.states("again").keys().collect::<Vec<_>>(), ["other"]);
}
