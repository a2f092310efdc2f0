//! The verdicts against those that were worked out by hand from the tables.

use super::*;

const CLAIMS_001: Table = Table::new(include_str!("../../../../../vectors/papers/seed001_fig7_claims.csv"));
const CLAIMS_002: Table = Table::new(include_str!("../../../../../vectors/papers/seed002_claims.csv"));
const CLAIMS_004: Table = Table::new(include_str!("../../../../../vectors/papers/seed004_claims.csv"));

fn checked(paper: &str) -> Vec<Checked> {
    let all = check(&Tables::PRINTED).unwrap();
    all.into_iter().filter(|claim| claim.paper == paper).collect()
}

fn one(tables: &Tables, paper: &str, id: &str) -> Finding {
    let all = check(tables).unwrap();
    all.into_iter().find(|claim| claim.paper == paper && claim.id == id).unwrap().finding
}

/// A verdict as it was written down.
fn written(words: &str) -> Verdict {
    match words {
        "-" => Verdict::NoNumbers,
        "not measured" => Verdict::NotMeasured,
        "not decidable" => Verdict::Undecidable,
        "only at 4096" | "mostly" | "ratio yes, wording no" => Verdict::Partly,
        _ if words.starts_with("yes") => Verdict::True,
        _ if words.starts_with("no ") || words.starts_with("no:") || words == "no" => Verdict::False,
        other => panic!("a verdict in other words: {other}"),
    }
}

/// The numbers of a sentence, as they stand there.
fn numbers_in(sentence: &str) -> Vec<String> {
    let parts = sentence.split(|sign: char| !sign.is_ascii_digit() && sign != '.');
    let parts = parts.flat_map(|part| part.split("..")).map(|part| part.trim_matches('.'));
    parts.filter(|part| !part.is_empty()).map(str::to_owned).collect()
}

/// Whether a number stands in the finding, rounded as it was written down.
fn has(finding: &Finding, written: &str) -> bool {
    let decimals = written.split_once('.').map_or(0, |(_, decimals)| decimals.len());
    let wanted: f64 = written.parse().unwrap();
    let half = 0.5 * 0.1_f64.powi(i32::try_from(decimals).unwrap());
    finding.numbers.iter().any(|number| (number.abs() - wanted).abs() <= half * 1.0001)
}

#[test]
fn every_claim_of_paper_002_gets_the_verdict_that_was_worked_out_by_hand() {
    let claims = checked("002");
    let ids: Vec<&str> = claims.iter().map(|claim| claim.id).collect();
    assert_eq!(ids, CLAIMS_002.cells("id").unwrap());
    for (claim, words) in claims.iter().zip(CLAIMS_002.cells("holds").unwrap()) {
        assert_eq!(claim.finding.verdict, written(&words), "{claim:?}");
    }
}

#[test]
fn the_numbers_behind_the_verdicts_on_paper_002_are_those_that_were_worked_out_by_hand() {
    // The words around these numbers contain others: the range of table 2, the number of the figure.
    let not_results: [(&str, &[&str]); 1] = [("C5", &["2", "1024", "4096", "11"])];
    let claims = checked("002");
    for (claim, sentence) in claims.iter().zip(CLAIMS_002.cells("recomputed_from_tables").unwrap()) {
        if matches!(claim.finding.verdict, Verdict::NoNumbers | Verdict::NotMeasured) {
            continue;
        }
        let left_out = not_results.iter().find(|(id, _)| *id == claim.id).map_or(&[][..], |row| row.1);
        for number in numbers_in(&sentence).iter().filter(|number| !left_out.contains(&number.as_str())) {
            assert!(has(&claim.finding, number), "{number} of {sentence:?} is not in {claim:?}");
        }
    }
}

#[test]
fn the_headline_ratios_are_within_a_hundredth_of_what_is_printed() {
    let printed = CLAIMS_002.cells("paper_value").unwrap();
    for (claim, printed) in checked("002").iter().zip(printed).take(4) {
        let difference = claim.finding.numbers[0] - printed.parse::<f64>().unwrap();
        assert!(difference.abs() <= 0.01, "{claim:?}");
    }
}

#[test]
fn every_claim_of_paper_004_gets_the_verdict_that_was_worked_out_by_hand() {
    let claims = checked("004");
    let expected = CLAIMS_004.cells("holds").unwrap();
    assert_eq!(claims.len(), expected.len());
    for (claim, words) in claims.iter().zip(expected) {
        assert_eq!(claim.finding.verdict, written(&words), "{claim:?}");
    }
    let by_hand: [(usize, &[&str]); 5] = [
        (0, &["3.109", "211"]),
        (1, &["32"]),
        (2, &["18", "20", "680.39", "924.59", "655.75", "848.43"]),
        (3, &["256", "1024", "8192"]),
        (4, &["3.11", "52"]),
    ];
    let sentences = CLAIMS_004.cells("recomputed").unwrap();
    for (row, numbers) in by_hand {
        for number in numbers {
            assert!(sentences[row].contains(number) || row == 3, "{}", sentences[row]);
            assert!(has(&claims[row].finding, number), "{number}: {:?}", claims[row]);
        }
    }
}

#[test]
fn paper_001_has_nothing_to_check_and_nothing_is_claimed_of_it() {
    let claims = checked("001");
    assert_eq!(claims.len(), CLAIMS_001.cells("claim").unwrap().len());
    assert!(claims.iter().all(|claim| claim.finding.verdict == Verdict::NoNumbers));
}

#[test]
fn papers_000_and_003_get_the_verdicts_that_were_worked_out_by_hand() {
    use Verdict::{False, NotMeasured, True};
    let verdicts = |paper| checked(paper).iter().map(|claim| claim.finding.verdict).collect::<Vec<_>>();
    assert_eq!(verdicts("000"), [True, True, True, True, NotMeasured]);
    assert_eq!(verdicts("003"), [True, True, False]);
    let by_hand: [(&str, &str, &[&str]); 6] = [
        ("000", "C2", &["1136"]),
        ("000", "C3", &["2.16"]),
        ("000", "C4", &["1.11", "3.06"]),
        ("003", "C1", &["11.0", "1.4"]),
        ("003", "C2", &["43.8"]),
        ("003", "C3", &["6589", "6064"]),
    ];
    for (paper, id, numbers) in by_hand {
        let finding = one(&Tables::PRINTED, paper, id);
        assert!(numbers.iter().all(|number| has(&finding, number)), "{finding:?}");
    }
}

/// A printed table with one cell changed.
fn changed(table: &'static str, from: &str, to: &str) -> Table {
    assert_eq!(table.matches(from).count(), 1, "{from}");
    Table::new(Box::leak(table.replace(from, to).into_boxed_str()))
}

#[test]
fn a_verdict_follows_the_table_and_not_the_paper() {
    let table2 = include_str!("../../../../../vectors/papers/seed002_table2.csv");
    let table3 = include_str!("../../../../../vectors/papers/seed002_table3.csv");
    let in_table2 = |from, to| Tables { seed002_table2: changed(table2, from, to), ..Tables::PRINTED };
    let in_table3 = |from, to| Tables { seed002_table3: changed(table3, from, to), ..Tables::PRINTED };
    let cases = [
        ("C1", in_table2("4715.85", "4600"), Verdict::False),
        ("C6", in_table2("518.4", "450"), Verdict::True),
        ("C5", in_table2("442.44", "340"), Verdict::False),
        ("C7", in_table2("215.49", "400"), Verdict::False),
        ("C8", in_table2("3348.39", "4800"), Verdict::False),
        ("C16", in_table3("1225,2775", "1025,2975"), Verdict::True),
    ];
    for (id, tables, expected) in cases {
        assert_eq!(one(&tables, "002", id).verdict, expected, "{id}");
        assert_ne!(one(&Tables::PRINTED, "002", id).verdict, expected, "{id}");
    }
}

#[test]
fn columns_that_cross_twice_cross_where_they_do_so_last() {
    let pair = sizes::Pair {
        sizes: vec![1.0, 2.0, 4.0, 8.0, 16.0],
        one: vec![1.0, 3.0, 3.0, 1.0, 1.0],
        other: vec![2.0; 5],
    };
    let last = pair.crossing(sizes::Between::Linear).unwrap();
    assert!((last - 6.0).abs() < 1e-12, "{last}");
    assert_eq!(sizes::Pair { one: vec![1.0; 5], ..pair }.crossing(sizes::Between::Linear), None);
}

#[test]
fn a_large_call_that_loses_too_does_not_fit_the_claim_about_small_ones() {
    let printed = one(&Tables::PRINTED, "004", "C4");
    assert_eq!(printed.numbers, [256.0, 256.0, 256.0, 256.0, 8192.0, 1024.0, 256.0, 256.0]);
    // Mars at 8192 B with one process, ECB, is the only exception; without it the claim holds.
    let table2 = include_str!("../../../../../vectors/papers/seed004_table2.csv");
    let [_, b, c, d] = Tables::PRINTED.seed004;
    let with = |cell: &str, other: &str| Tables {
        seed004: [changed(table2, cell, other), b, c, d],
        ..Tables::PRINTED
    };
    assert_eq!(one(&with("315.82", "400"), "004", "C4").verdict, Verdict::True);
    let gap = with("971.2,315.82", "300,400");
    assert_eq!(one(&gap, "004", "C4").verdict, Verdict::Partly);
}

#[test]
fn every_row_of_table_3_adds_up_to_4000_files() {
    for way in ["cpu_only", "module_only", "round_robin", "polling", "proposed"] {
        let side = |side| SEED002_TABLE3.numbers(&format!("{way}_{side}_files")).unwrap();
        let sums: Vec<f64> =
            side("cpu").iter().zip(side("module")).map(|(cpu, module)| cpu + module).collect();
        assert_eq!(sums, [4000.0; 8], "{way}");
    }
}

#[test]
fn ids_are_unique_within_a_paper() {
    let all = check(&Tables::PRINTED).unwrap();
    for (row, claim) in all.iter().enumerate() {
        assert!(
            !all[..row].iter().any(|other| other.paper == claim.paper && other.id == claim.id),
            "{claim:?}"
        );
    }
}
