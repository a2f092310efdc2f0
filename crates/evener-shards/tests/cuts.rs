//! Cuts and plans: every name is in exactly one shard, whatever the names are; shards are about equal; a plan is small.
#![allow(clippy::unwrap_used, reason = "a test")]

use std::collections::BTreeMap;

use evener_shards::{Cuts, Direction, OutOfOrder, Plan, PlanError, Shard, Wanted};
use proptest::prelude::*;

fn cut(objects: &BTreeMap<String, u64>, wanted: Wanted) -> Vec<Shard> {
    let mut cuts = Cuts::new(wanted);
    for (name, bytes) in objects {
        cuts.add(name, *bytes).unwrap();
    }
    cuts.finish()
}

fn plan(shards: Vec<Shard>) -> Plan {
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
    }
}

/// How many objects and bytes lie in the range of each shard: counted over all names, without a look at what the shard says.
fn counted(plan: &Plan, objects: &BTreeMap<String, u64>) -> Vec<(u64, u64)> {
    let shards = 0..u32::try_from(plan.shards.len()).unwrap();
    let ranges = shards.map(|number| plan.shard(number).unwrap());
    let count = |(shard, upto): (&Shard, Option<&str>)| {
        let own = objects.iter().filter(|(name, _)| {
            name.as_str() > shard.after.as_str() && upto.is_none_or(|upto| name.as_str() <= upto)
        });
        own.fold((0, 0), |(count, sum), (_, bytes)| (count + 1, sum + bytes))
    };
    ranges.map(count).collect()
}

fn objects() -> impl Strategy<Value = BTreeMap<String, u64>> {
    // Names that begin alike, are beginnings of each other, and have characters of several bytes.
    let name = prop_oneof!["[ab/]{1,6}", "part-[0-9]{1,4}", "[a-c\u{e9}\u{10FFFF}]{1,4}"];
    prop::collection::btree_map(name, 0_u64..10_000_000, 0..200)
}

proptest! {
    #[test]
    fn every_name_is_in_exactly_one_shard_and_the_shard_says_how_many_it_has(
        objects in objects(), wanted in prop_oneof![(1_u32..40).prop_map(Wanted::Shards), (1_u64..100_000_000).prop_map(Wanted::Bytes)]
    ) {
        let plan = plan(cut(&objects, wanted));
        let said: Vec<_> = plan.shards.iter().map(|shard| (shard.objects, shard.bytes)).collect();
        prop_assert_eq!(counted(&plan, &objects), said);
        let total: u64 = plan.shards.iter().map(|shard| shard.objects).sum();
        prop_assert_eq!(total, objects.len() as u64);
        if let Wanted::Shards(count) = wanted {
            prop_assert_eq!(plan.shards.len(), objects.len().min(count as usize));
        }
        prop_assert_eq!(Plan::read(&plan.written()).unwrap(), plan);
    }
}

#[test]
fn shards_of_many_objects_differ_by_little_in_what_they_weigh() {
    let size = |number: u64| 1 + number.wrapping_mul(0x9E37_79B9_7F4A_7C15) % (8 << 20);
    let objects: BTreeMap<_, _> = (0..50_000)
        .map(|number| (format!("data/{:03}/object-{number:08}", number / 97), size(number)))
        .collect();
    let shards = cut(&objects, Wanted::Shards(64));
    assert_eq!(shards.len(), 64);
    let weights: Vec<u64> = shards.iter().map(|shard| shard.bytes + (shard.objects << 16)).collect();
    let (mean, most) = (weights.iter().sum::<u64>() / 64, *weights.iter().max().unwrap());
    assert!(most * 100 < mean * 108, "the heaviest has {most}, the mean is {mean}");
    let written = plan(shards).written();
    assert!(written.len() < 50_000, "{} bytes for 50000 objects: more than 1 KB for 1000", written.len());
}

#[test]
fn a_cut_says_no_more_than_it_must() {
    let names = ["alpha/long-name", "beta/another", "beta/another-one", "beta/b", "gamma", "gamma/1"];
    let objects: BTreeMap<_, _> = names.map(|name| (name.to_owned(), 1)).into();
    let shards = cut(&objects, Wanted::Shards(6));
    let cuts: Vec<_> = shards.iter().map(|shard| shard.after.as_str()).collect();
    assert_eq!(cuts, ["", "b", "beta/another", "beta/another-one", "g", "gamma"]);
}

#[test]
fn shards_by_bytes_hold_no_more_than_was_asked_unless_one_object_does() {
    let objects: BTreeMap<_, _> = (0..1000)
        .map(|number| (format!("{number:05}"), if number == 500 { 1 << 30 } else { 1 << 20 }))
        .collect();
    let shards = cut(&objects, Wanted::Bytes(10 << 20));
    let large: Vec<_> = shards.iter().filter(|shard| shard.bytes > 10 << 20).collect();
    assert!(matches!(large[..], [Shard { objects: 1, bytes: 1_073_741_824, .. }]), "{large:?}");
    let expected = 1000_usize.div_ceil(9);
    assert!((expected..=expected + 2).contains(&shards.len()), "{} shards", shards.len());
}

#[test]
fn a_listing_out_of_order_is_refused() {
    let mut cuts = Cuts::new(Wanted::Shards(3));
    cuts.add("b", 1).unwrap();
    assert_eq!(cuts.add("b", 1), Err(OutOfOrder("b".to_owned())));
    assert_eq!(cuts.add("a", 1), Err(OutOfOrder("a".to_owned())));
    assert!(cuts.add("b/", 1).is_ok());
}

#[test]
fn what_is_no_plan_is_refused_and_says_why() {
    let good = plan(vec![Shard::default(), Shard { after: "m".into(), objects: 2, bytes: 3 }]);
    let text = good.written();
    assert_eq!(Plan::read(&text).unwrap(), good);
    let unordered = Plan { is_ordered: false, ..good.clone() };
    assert_eq!(Plan::read(&unordered.written()).unwrap(), unordered);
    assert!(matches!(good.shard(2), Err(PlanError::NoSuchShard { shards: 2, number: 2 })));
    assert_eq!(Plan::read(&text.replace("plan\":1", "plan\":2")), Err(PlanError::Version(2)));
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
