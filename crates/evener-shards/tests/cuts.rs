//! Cuts and plans: every name is in exactly one shard, whatever the names are; shards are about equal; a plan is small.
#![allow(clippy::unwrap_used, reason = "a test")]

use std::collections::BTreeMap;

use evener_shards::{
    Cuts, Direction, OutOfOrder, Plan, PlanError, Portion, RANGE_BYTES_MIN, Ranged, Shard, Wanted,
};
use proptest::prelude::*;

fn cut(objects: &BTreeMap<String, u64>, wanted: Wanted, tag: Option<&str>) -> (Vec<Shard>, Vec<Ranged>) {
    let mut cuts = Cuts::new(wanted);
    for (name, bytes) in objects {
        cuts.add(name, *bytes, tag).unwrap();
    }
    cuts.finish()
}

/// Where no object may be cut.
fn cut_whole(objects: &BTreeMap<String, u64>, wanted: Wanted) -> Vec<Shard> {
    let (shards, ranged) = cut(objects, wanted, None);
    assert_eq!(ranged, []);
    shards
}

fn plan(shards: Vec<Shard>, ranged: Vec<Ranged>) -> Plan {
    let (source, destination) = ("s3://bucket/plain".to_owned(), "s3://bucket/sealed".to_owned());
    let direction = Direction::Encrypt;
    Plan {
        direction,
        source,
        destination,
        suffix: ".age".to_owned(),
        salt: [7; 16],
        is_ordered: true,
        shards,
        ranged,
    }
}

/// How many objects lie in each shard of names, and their bytes: counted over all names, without a look at what the shard says.
fn counted(plan: &Plan, objects: &BTreeMap<String, u64>) -> Vec<(u64, u64)> {
    let shards = (0..plan.shard_count()).map(|number| plan.shard(number).unwrap());
    let count = |shard| {
        let Portion::Names(Shard { after, .. }, upto) = shard else { return None };
        let own = objects.iter().filter(|(name, _)| {
            let name = name.as_str();
            name > after.as_str() && upto.is_none_or(|upto| name <= upto) && !plan.is_ranged(name)
        });
        Some(own.fold((0, 0), |(count, sum), (_, bytes)| (count + 1, sum + bytes)))
    };
    shards.filter_map(count).collect()
}

fn objects(bytes: impl Strategy<Value = u64>) -> impl Strategy<Value = BTreeMap<String, u64>> {
    // Names that begin alike, are beginnings of each other, and have characters of several bytes.
    let name = prop_oneof!["[ab/]{1,6}", "part-[0-9]{1,4}", "[a-c\u{e9}\u{10FFFF}]{1,4}"];
    prop::collection::btree_map(name, bytes, 0..200)
}

fn wanted() -> impl Strategy<Value = Wanted> {
    prop_oneof![(1_u32..40).prop_map(Wanted::Shards), (1_u64..100_000_000).prop_map(Wanted::Bytes)]
}

proptest! {
    #[test]
    fn every_name_is_in_exactly_one_shard_and_the_shard_says_how_many_it_has(
        objects in objects(0_u64..10_000_000), wanted in wanted()
    ) {
        let plan = plan(cut_whole(&objects, wanted), Vec::new());
        let said: Vec<_> = plan.shards.iter().map(|shard| (shard.objects, shard.bytes)).collect();
        prop_assert_eq!(counted(&plan, &objects), said);
        let total: u64 = plan.shards.iter().map(|shard| shard.objects).sum();
        prop_assert_eq!(total, objects.len() as u64);
        if let Wanted::Shards(count) = wanted {
            prop_assert_eq!(plan.shards.len(), objects.len().min(count as usize));
        }
        prop_assert_eq!(Plan::read(&plan.written()).unwrap(), plan);
    }

    #[test]
    fn an_object_is_cut_where_it_outweighs_a_shard_and_is_then_in_no_other(
        objects in objects(prop_oneof![3 => 0_u64..10_000_000, 1 => 0_u64..5_000_000_000]), wanted in wanted()
    ) {
        let (shards, ranged) = cut(&objects, wanted, Some("\"tag\""));
        let plan = plan(shards, ranged);
        let said: Vec<_> = plan.shards.iter().map(|shard| (shard.objects, shard.bytes)).collect();
        prop_assert_eq!(counted(&plan, &objects), said);
        let total: u64 = plan.shards.iter().map(|shard| shard.objects).sum();
        prop_assert_eq!(total, (objects.len() - plan.ranged.len()) as u64, "all others");
        for object in &plan.ranged {
            prop_assert_eq!(objects[&object.name], object.bytes);
            prop_assert!(object.count >= 2 && object.bytes / u64::from(object.count) >= RANGE_BYTES_MIN);
        }
        prop_assert_eq!(Plan::read(&plan.written()).unwrap(), plan.clone());
        let weight = |bytes: u64, count: u64| bytes + (count << 16);
        match wanted {
            Wanted::Shards(count) => {
                prop_assert!(plan.shard_count() <= count);
                // What was left whole was so because it is light, short, or because all shards were given out to what is heavier.
                let fair = objects.values().map(|bytes| weight(*bytes, 1)).sum::<u64>() / u64::from(count);
                for (_, bytes) in objects.iter().filter(|(name, _)| !plan.is_ranged(name)) {
                    prop_assert!(weight(*bytes, 1) <= 2 * fair + 1 || *bytes < 2 * RANGE_BYTES_MIN);
                }
            }
            Wanted::Bytes(most) => {
                let is_cut = |bytes: u64| weight(bytes, 1) > most && bytes >= 2 * RANGE_BYTES_MIN;
                prop_assert!(objects.iter().all(|(name, bytes)| plan.is_ranged(name) == is_cut(*bytes)));
            }
        }
    }

    #[test]
    fn ranges_have_every_part_once_and_differ_by_one(count in 1_u32..2000, part_count in 0_usize..20_000) {
        let object = Ranged { name: "a".into(), bytes: 1, tag: "t".into(), count };
        let ranges: Vec<_> = (0..count).map(|number| object.parts(number, part_count)).collect();
        let ends = ranges.iter().map(|range| range.end);
        prop_assert!(ranges.iter().map(|range| range.start).eq(std::iter::once(0).chain(ends)
            .take(count as usize)));
        prop_assert_eq!(ranges.last().unwrap().end, part_count);
        let lengths = ranges.iter().map(ExactSizeIterator::len);
        prop_assert!(lengths.clone().max().unwrap() - lengths.min().unwrap() <= 1);
    }
}

#[test]
fn the_heaviest_shard_is_about_as_light_as_can_be_where_an_object_may_be_cut() {
    const GIB: u64 = 1 << 30;
    let mut objects: BTreeMap<_, _> =
        (0..1000).map(|number| (format!("small/{number:04}"), 1 << 20)).collect();
    objects.insert("a/large".to_owned(), 40 * GIB);
    objects.insert("small/0500-large".to_owned(), 9 * GIB);
    let (shards, ranged) = cut(&objects, Wanted::Shards(50), Some("\"tag\""));
    let names: Vec<_> = ranged.iter().map(|object| object.name.as_str()).collect();
    assert_eq!(names, ["a/large", "small/0500-large"]);
    // Judged by all ways to give 50 shards to the two and the others.
    let weights = [40 * GIB + (64 << 10), 9 * GIB + (64 << 10), 1000 * ((1 << 20) + (64 << 10))];
    let heaviest = |counts: [u64; 3]| (0..3).map(|at| weights[at].div_ceil(counts[at])).max().unwrap();
    let all =
        (1..49).flat_map(|one| (1..50 - one).map(move |other| heaviest([one, other, 50 - one - other])));
    let ours = [ranged[0].count.into(), ranged[1].count.into(), shards.len() as u64];
    assert_eq!((ours.iter().sum(), heaviest(ours)), (50, all.min().unwrap()));
    assert_eq!(shards.iter().map(|shard| shard.objects).sum::<u64>(), 1000);
    let written = plan(shards, ranged).written();
    assert!(written.len() < 400, "{written}");
    // One alone: all shards but one are its ranges, if they are not too small.
    let alone = BTreeMap::from([("alone".to_owned(), GIB)]);
    for (wanted, count) in [(3, 2), (1000, 16)] {
        let (shards, ranged) = cut(&alone, Wanted::Shards(wanted), Some("t"));
        assert_eq!((shards.len(), ranged[0].count), (1, count));
    }
    assert_eq!(cut(&alone, Wanted::Shards(1), Some("t")).0.len(), 1);
}

#[test]
fn where_all_that_is_there_is_cut_a_shard_of_names_is_left_for_what_comes_later() {
    let large = BTreeMap::from([("l".to_owned(), 1 << 30), ("m".to_owned(), 1 << 30)]);
    for wanted in [Wanted::Shards(10), Wanted::Bytes(256 << 20)] {
        let (shards, ranged) = cut(&large, wanted, Some("t"));
        let plan = plan(shards, ranged);
        assert_eq!(plan.ranged.len(), 2);
        for name in ["a", "l-later", "z"] {
            assert!(of_names(&plan, name), "{name} {wanted:?}");
        }
        if let Wanted::Shards(count) = wanted {
            assert_eq!(plan.shard_count(), count);
        }
    }
}

/// Whether one shard has a name.
fn of_names(plan: &Plan, name: &str) -> bool {
    let has = |number: u32| match plan.shard(number).unwrap() {
        Portion::Names(Shard { after, .. }, upto) => {
            name > after.as_str() && upto.is_none_or(|upto| name <= upto) && !plan.is_ranged(name)
        }
        Portion::Range(..) => false,
    };
    (0..plan.shard_count()).filter(|number| has(*number)).count() == 1
}

#[test]
fn shards_of_many_objects_differ_by_little_in_what_they_weigh() {
    let size = |number: u64| 1 + number.wrapping_mul(0x9E37_79B9_7F4A_7C15) % (8 << 20);
    let objects: BTreeMap<_, _> = (0..50_000)
        .map(|number| (format!("data/{:03}/object-{number:08}", number / 97), size(number)))
        .collect();
    let shards = cut_whole(&objects, Wanted::Shards(64));
    assert_eq!(shards.len(), 64);
    let weights: Vec<u64> = shards.iter().map(|shard| shard.bytes + (shard.objects << 16)).collect();
    let (mean, most) = (weights.iter().sum::<u64>() / 64, *weights.iter().max().unwrap());
    assert!(most * 100 < mean * 108, "the heaviest has {most}, the mean is {mean}");
    let written = plan(shards, Vec::new()).written();
    assert!(written.len() < 50_000, "{} bytes for 50000 objects: more than 1 KB for 1000", written.len());
}

#[test]
fn a_cut_says_no_more_than_it_must() {
    let names = ["alpha/long-name", "beta/another", "beta/another-one", "beta/b", "gamma", "gamma/1"];
    let objects: BTreeMap<_, _> = names.map(|name| (name.to_owned(), 1)).into();
    let shards = cut_whole(&objects, Wanted::Shards(6));
    let cuts: Vec<_> = shards.iter().map(|shard| shard.after.as_str()).collect();
    assert_eq!(cuts, ["", "b", "beta/another", "beta/another-one", "g", "gamma"]);
}

#[test]
fn shards_by_bytes_hold_no_more_than_was_asked_unless_one_object_does() {
    let objects: BTreeMap<_, _> = (0..1000)
        .map(|number| (format!("{number:05}"), if number == 500 { 1 << 30 } else { 1 << 20 }))
        .collect();
    let shards = cut_whole(&objects, Wanted::Bytes(10 << 20));
    let large: Vec<_> = shards.iter().filter(|shard| shard.bytes > 10 << 20).collect();
    assert!(matches!(large[..], [Shard { objects: 1, bytes: 1_073_741_824, .. }]), "{large:?}");
    let expected = 1000_usize.div_ceil(9);
    assert!((expected..=expected + 2).contains(&shards.len()), "{} shards", shards.len());
}

#[test]
fn a_listing_out_of_order_is_refused() {
    let mut cuts = Cuts::new(Wanted::Shards(3));
    cuts.add("b", 1, None).unwrap();
    assert_eq!(cuts.add("b", 1, None), Err(OutOfOrder("b".to_owned())));
    assert_eq!(cuts.add("a", 1, None), Err(OutOfOrder("a".to_owned())));
    assert!(cuts.add("b/", 1, None).is_ok());
}

#[test]
fn what_is_no_plan_is_refused_and_says_why() {
    let good = plan(vec![Shard::default(), Shard { after: "m".into(), objects: 2, bytes: 3 }], Vec::new());
    let text = good.written();
    assert_eq!(Plan::read(&text).unwrap(), good);
    assert!(text.contains("plan\":1,"), "earlier commands read it: {text}");
    let unordered = Plan { is_ordered: false, ..good.clone() };
    assert_eq!(Plan::read(&unordered.written()).unwrap(), unordered);
    assert!(matches!(good.shard(2), Err(PlanError::NoSuchShard { shards: 2, number: 2 })));
    assert_eq!(Plan::read(&text.replace("plan\":1", "plan\":3")), Err(PlanError::Version(3)));
    assert_eq!(Plan::read(&text.replace("\"m\"", "\"\"")), Err(PlanError::Order));
    assert_eq!(Plan::read(&text.replacen("[\"\"", "[\"a\"", 1)), Err(PlanError::Order));
    for bad in [
        "",
        "{}",
        "[]",
        &text.replace("0707", "07g7"),
        &text.replace("07070707\"", "070707\""),
        &text.replace("salt", "salz"),
    ] {
        assert!(matches!(Plan::read(bad), Err(PlanError::Malformed(_))), "{bad}");
    }
}

#[test]
fn ranges_are_the_shards_behind_those_of_names_and_what_is_none_is_refused() {
    let object = |name: &str, count| Ranged { name: name.into(), bytes: 9, tag: "\"t\"".into(), count };
    let good = plan(vec![Shard::default()], vec![object("l", 2), object("m", 3)]);
    let text = good.written();
    assert_eq!(Plan::read(&text).unwrap(), good);
    assert!(
        text.contains("plan\":2,"),
        "earlier commands, which would leave ranges undone, refuse it: {text}"
    );
    let names = |number| matches!(good.shard(number), Ok(Portion::Names(..)));
    assert_eq!([names(0), names(1)], [true, false]);
    let range = |number| match good.shard(number) {
        Ok(Portion::Range(object, number)) => (object.name.as_str(), number),
        other => panic!("{other:?}"),
    };
    assert_eq!([1, 2, 3, 4, 5].map(range), [("l", 0), ("l", 1), ("m", 0), ("m", 1), ("m", 2)]);
    assert_eq!(good.shard(6), Err(PlanError::NoSuchShard { shards: 6, number: 6 }));
    assert_eq!(Plan::read(&text.replace("\"l\"", "\"m\"")), Err(PlanError::Order));
    for (of, by) in [(",2]", ",0]"), (",3]", ",4294967295]"), ("\"l\"", "\"\""), ("\"\\\"t\\\"\"", "\"\"")] {
        assert!(text.contains(of), "{of} {text}");
        assert_eq!(Plan::read(&text.replace(of, by)), Err(PlanError::Ranges), "{of} {by}");
    }
}
