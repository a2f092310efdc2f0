//! Costs as text: what is written is read again, and what does not fit its scope or its bounds is refused.

use proptest::prelude::*;

use super::*;
use crate::cost::estimate::{ModuleSample, OVERHEAD_MAX, WIDTHS};
use crate::job::algorithm::{Algorithm, Direction};
use crate::job::class::Class;
use crate::units::Nanos;

const fn library(method: Method, detail: &str) -> Library<'_> {
    Library { method, detail, only: None }
}

const LIBRARIES: [Library<'_>; 2] =
    [library(Method::Plain, "OpenSSL 3.0.19"), library(Method::MultiBuffer, "libipsec-mb 1.3.0")];

fn module(name: &str, detail: &str) -> Profile {
    Profile { name: name.to_owned(), detail: detail.to_owned(), width: 1, emulated: true }
}

fn scope() -> CostScope {
    CostScope::new("X 1", &LIBRARIES, &[module("slow", "1.0"), module("fast", "2.0")])
}

fn class(bytes: usize) -> Class {
    Class::of(Algorithm::Aes128Cbc, Direction::Encrypt, bytes, true)
}

fn sample(d: u64, h: u64) -> ModuleSample {
    ModuleSample { jobs: 1, bytes: 16_384, d: Nanos(d), h: Nanos(h), now: Nanos(7) }
}

/// 20 samples of a core, two of the second module.
fn learned() -> Estimator {
    let mut learned = scope().no_costs();
    for _ in 0..20 {
        learned.saw_cpu(class(16_384), Method::MultiBuffer, 16, 16 * 16_384, Nanos(16 * 4_000));
    }
    learned.saw_cpu(class(1 << 21), Method::Plain, 1, 1 << 21, Nanos(1_000_000));
    learned.saw_module(1, class(16_384), &sample(300, 900));
    learned.saw_module(1, class(16_384), &sample(300, 900));
    learned
}

fn cost_file() -> CostFile {
    let mut cost_file = CostFile::default();
    cost_file.renew(&scope(), &learned(), 1_795_304_000);
    cost_file
}

const FILE: &str = "\
evener costs 1
saved 1795304000
processor X 1
plain OpenSSL 3.0.19
c AES-128-CBC encrypt more out-of-place 1 1 1000000.0 2097152.0
multi-buffer libipsec-mb 1.3.0
c AES-128-CBC encrypt 16384 out-of-place 16 20 4000.0 16384.0
module fast\t2.0
d AES-128-CBC encrypt 16384 out-of-place 2 300.0 16384.0
h AES-128-CBC encrypt 16384 out-of-place 2 900.0 16384.0
";

#[test]
fn the_file_is_as_the_format_says_and_is_read_back_as_it_was() {
    assert_eq!(cost_file().text(), FILE);
    assert_eq!(CostFile::parse(FILE), Ok(cost_file()));
}

#[test]
fn what_was_learned_is_known_again_and_counts_as_sixteen_samples_at_most() {
    let again = CostFile::parse(FILE).unwrap().estimator(&scope());
    let mean = |method, bytes, width| again.cpu(class(bytes), method, width).copied();
    let of_core = Learned::kept(4_000.0, 16_384.0, SAMPLES_MAX);
    assert_eq!(mean(Method::MultiBuffer, 16_384, 16), Some(of_core));
    assert_eq!(mean(Method::Plain, 1 << 21, 1), Some(Learned::kept(1_000_000.0, 2_097_152.0, 1)));
    let on_module = again.on_module(1, class(16_384));
    assert_eq!((on_module.d.at(16_384), on_module.h.at(16_384)), (Some(Nanos(300)), Some(Nanos(900))));
    assert_eq!((on_module.tries, on_module.last), (0, Nanos::ZERO));
    assert_eq!(again.on_module(0, class(16_384)), OnModule::default());
}

#[test]
fn new_samples_move_what_was_kept() {
    let mut again = cost_file().estimator(&scope());
    for _ in 0..16 {
        again.saw_cpu(class(16_384), Method::MultiBuffer, 16, 16 * 16_384, Nanos(16 * 6_000));
    }
    let now = again.c(class(16_384), 16_384, 16).unwrap();
    assert!((5_500..6_000).contains(&now.0), "{now:?}");
}

#[test]
fn costs_of_what_is_not_there_any_more_are_left_out_and_not_forgotten() {
    let newer = [library(Method::Plain, "OpenSSL 3.0.20"), LIBRARIES[1]];
    let other = CostScope::new("X 1", &newer, &[module("fast", "2.1")]);
    let known = cost_file().estimator(&other);
    assert_eq!(known.all_cpu().map(|row| row.1).collect::<Vec<_>>(), [Method::MultiBuffer]);
    assert_eq!(known.all_on_module(0).count(), 0);
    let mut renewed = cost_file();
    renewed.renew(&other, &known, 1);
    assert_eq!(renewed.estimator(&scope()), cost_file().estimator(&scope()));
    let elsewhere = CostScope::new("X 2", &LIBRARIES, &[]);
    assert_eq!(cost_file().estimator(&elsewhere), elsewhere.no_costs());
    renewed.renew(&elsewhere, &learned(), 2);
    assert_eq!(renewed.estimator(&scope()), scope().no_costs());
    assert_eq!(renewed.sources().count(), 2);
}

#[test]
fn a_reader_of_some_algorithms_gets_their_costs_and_passes_over_the_rest() {
    let other = "c AES-128-GCM encrypt 16384 out-of-place 16 2 no number\n";
    let text = FILE.replace("module fast", &format!("{other}module fast"));
    assert!(CostFile::parse(&text).is_err());
    assert_eq!(CostFile::parse_only(&text, &[Algorithm::Aes128Cbc]), Ok(cost_file()));
    let none = CostFile::parse_only(&text, &[Algorithm::Aes256Cbc]).unwrap();
    assert_eq!(none.estimator(&scope()), scope().no_costs());
    let of_none = FILE.replace("AES-128-CBC encrypt more", "AES-1-CBC encrypt more");
    let bad = BadLine { line: 5, wrong: Wrong::Class };
    assert_eq!(CostFile::parse_only(&of_none, &[Algorithm::Aes256Cbc]), Err(bad), "no algorithm's name");
}

/// Of two libraries of one method each has the costs of its own algorithms, also where a file says more of it.
#[test]
fn each_library_of_a_method_is_known_by_its_own_algorithms() {
    let kernels =
        Library { only: Some(&[Algorithm::Aes128Gcm]), ..library(Method::MultiBuffer, "kernels 1") };
    let both = CostScope::new("X 1", &[LIBRARIES[0], LIBRARIES[1], kernels], &[]);
    let class = |algorithm| Class::of(algorithm, Direction::Encrypt, 16_384, false);
    let all = [Algorithm::Aes128Cbc, Algorithm::Aes128Gcm];
    let mut learned = both.no_costs();
    for (number, algorithm) in all.into_iter().enumerate() {
        learned.saw_cpu(class(algorithm), Method::MultiBuffer, 16, 16 * 16_384, Nanos(1_000 + number as u64));
    }
    let mut cost_file = CostFile::default();
    cost_file.renew(&both, &learned, 1);
    assert_eq!(cost_file.sources().map(|(_, classes)| classes).collect::<Vec<_>>(), [1, 1]);
    assert_eq!(cost_file.estimator(&both), learned);
    let known = |scope: &CostScope| {
        let estimator = cost_file.estimator(scope);
        all.map(|algorithm| estimator.cpu(class(algorithm), Method::MultiBuffer, 16).is_some())
    };
    assert_eq!(known(&CostScope::new("X 1", &[LIBRARIES[1]], &[])), [true, false]);
    assert_eq!(known(&CostScope::new("X 1", &[kernels], &[])), [false, true]);
}

#[test]
fn the_sources_used_last_are_kept() {
    let mut cost_file = cost_file();
    for number in 0..2 * PARTS_MAX {
        let one = CostScope::new("X 1", &[], &[module("of many", &number.to_string())]);
        let mut learned = one.no_costs();
        learned.saw_module(0, class(16_384), &sample(1, 1));
        cost_file.renew(&one, &learned, 3);
    }
    assert_eq!(cost_file.sources().count(), PARTS_MAX);
    let newest = Source::Module("of many".to_owned(), (2 * PARTS_MAX - 1).to_string());
    assert_eq!(cost_file.sources().next(), Some((&newest, 1)));
}

#[test]
fn numbers_beyond_reason_are_brought_into_range() {
    let mean = |cost: &str| {
        let of = "c AES-128-CBC encrypt 16384 out-of-place 16";
        let text = FILE.replace(&format!("{of} 20 4000.0 16384.0"), &format!("{of} {cost}"));
        let known = CostFile::parse(&text).unwrap().estimator(&scope());
        *known.cpu(class(16_384), Method::MultiBuffer, 16).unwrap()
    };
    assert_eq!(mean("3 4000.06 16384.01"), Learned::kept(4000.1, 16_384.0, 3));
    assert_eq!(mean("0 -5 -5"), Learned::kept(0.1, 0.0, 1));
    assert_eq!(
        mean("99999999999 1e300 1e300"),
        Learned::kept(599_999_999_999.0, 1_099_511_627_776.0, SAMPLES_MAX)
    );
}

#[test]
fn the_first_line_that_is_wrong_is_named() {
    let wrong = |from: &str, to: &str| CostFile::parse(&FILE.replacen(from, to, 1)).map(drop);
    let at = |line, wrong| Err(BadLine { line, wrong });
    assert_eq!(wrong("costs 1", "costs 2"), at(1, Wrong::Version));
    assert_eq!(wrong("saved 1795304000", "saved -1"), at(2, Wrong::Saved));
    assert_eq!(wrong("processor ", "cpu "), at(3, Wrong::Processor));
    assert_eq!(wrong("plain OpenSSL 3.0.19\n", ""), at(4, Wrong::NoSource));
    assert_eq!(
        wrong("c AES-128-CBC encrypt more out-of-place 1", "d AES-128-CBC encrypt more out-of-place"),
        at(5, Wrong::NoSource)
    );
    assert_eq!(wrong("CBC encrypt 16384", "CBC encrypt 16000"), at(7, Wrong::Class));
    assert_eq!(wrong("place 16 20", "place 15 20"), at(7, Wrong::Width));
    assert_eq!(wrong("16 20 4000.0", "16 x 4000.0"), at(7, Wrong::Samples));
    assert_eq!(wrong("4000.0", "NaN"), at(7, Wrong::Number));
    assert_eq!(wrong(" 4000.0", ""), at(7, Wrong::Number));
    assert_eq!(wrong("4000.0", "1 2 3"), at(7, Wrong::TooLong));
    assert_eq!(wrong("\nh ", "\nd "), at(10, Wrong::Twice));
    assert_eq!(CostFile::parse(&FILE[..FILE.len() - 1]).map(drop), at(10, Wrong::CutOff));
    assert_eq!(CostFile::parse("").map(drop), at(1, Wrong::CutOff));
    let shown = wrong("4000.0", "NaN").unwrap_err().to_string();
    assert_eq!(shown, "line 7: a mean is no number");
}

#[test]
fn a_class_of_which_half_is_known_is_left_out() {
    for line in FILE.lines().filter(|line| line.starts_with(['d', 'h'])) {
        let cost_file = CostFile::parse(&FILE.replacen(&format!("{line}\n"), "", 1)).unwrap();
        assert_eq!(cost_file.estimator(&scope()).all_on_module(1).count(), 0, "{line}");
    }
}

#[test]
fn names_with_line_ends_and_tabs_do_not_break_the_file() {
    let odd = CostScope::new("X\n1", &[library(Method::Plain, "a\tb\u{1b}\r\nc")], &[module("m\t\n", "")]);
    let mut learned = odd.no_costs();
    learned.saw_cpu(class(64), Method::Plain, 1, 64, Nanos(50));
    learned.saw_module(
        0,
        class(64),
        &ModuleSample { jobs: 1, bytes: 64, d: Nanos(1), h: Nanos(0), now: Nanos(1) },
    );
    let mut cost_file = CostFile::default();
    cost_file.renew(&odd, &learned, 1);
    assert!(cost_file.text().contains("plain a b c\n"), "{}", cost_file.text());
    let again = CostFile::parse(&cost_file.text()).unwrap().estimator(&odd);
    assert_eq!((again.all_cpu().count(), again.all_on_module(0).count()), (1, 1));
}

/// Any estimator of the two modules, with means as the format keeps them: tenths.
fn any_estimator() -> impl Strategy<Value = Estimator> {
    let mean = (1_u32..6_000_000, 0.0..=1.0, 1_u32..=SAMPLES_MAX);
    let cpu = (0..Class::COUNT, any::<bool>(), 0..WIDTHS, mean.clone());
    let on_module = (0..2_usize, 0..Class::COUNT, mean.clone(), mean);
    (prop::collection::vec(cpu, 0..40), prop::collection::vec(on_module, 0..40)).prop_map(|(cpu, modules)| {
        let mut estimator = scope().no_costs();
        for (index, is_multi, width, mean) in cpu {
            let class = Class::from_index(index).unwrap();
            estimator.keep_cpu(class, Method::ALL[usize::from(is_multi)], width, kept_mean(class, mean));
        }
        for (module, index, d, h) in modules {
            let class = Class::from_index(index).unwrap();
            let known = OnModule { d: kept_mean(class, d), h: kept_mean(class, h), ..OnModule::default() };
            estimator.keep_module(module, class, known);
        }
        estimator
    })
}

#[expect(clippy::cast_precision_loss, reason = "sizes of a test")]
fn kept_mean(class: Class, (tenths, place, samples): (u32, f64, u32)) -> Learned {
    let (start, end) = class.bytes().into_inner();
    let end = end.min(usize::try_from(1_u64 << 40).unwrap_or(usize::MAX));
    let bytes = start as f64 + (end - start) as f64 * place;
    Learned::kept(f64::from(tenths) / 10.0, bytes.round(), samples)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, max_shrink_iters: 200, ..ProptestConfig::default() })]

    #[test]
    fn whatever_was_learned_is_known_again(estimator in any_estimator()) {
        let mut cost_file = CostFile::default();
        cost_file.renew(&scope(), &estimator, 5);
        let again = CostFile::parse(&cost_file.text()).unwrap();
        prop_assert_eq!(again.estimator(&scope()), estimator);
        prop_assert_eq!(again.text(), cost_file.text());
    }

    /// A text that is read is written again in a form that is read to the same.
    #[test]
    fn no_text_makes_the_reader_panic(
        spoils in prop::collection::vec((any::<prop::sample::Index>(), 0..4_u8, "\\PC|\n|\t|[0-9 .eE+-]{0,6}"), 0..6),
    ) {
        let mut text: Vec<char> = FILE.chars().collect();
        for (place, how, piece) in spoils {
            let at = place.index(text.len() + 1);
            let end = (at + piece.len()).min(text.len());
            match how {
                0 => drop(text.splice(at..end, piece.chars())),
                1 => drop(text.splice(at..at, piece.chars())),
                2 => drop(text.drain(at..end)),
                _ => text.extend_from_within(at..end),
            }
        }
        let text: String = text.into_iter().collect();
        if let Ok(cost_file) = CostFile::parse(&text) {
            let known = cost_file.estimator(&scope());
            let sane = |mean: &Learned| mean.ns > 0.0 && mean.ns < 6e11 && mean.samples <= SAMPLES_MAX;
            prop_assert!(known.all_cpu().all(|row| sane(row.3)));
            prop_assert!(known.all_on_module(1).all(|(_, on)| sane(&on.d) && sane(&on.h)));
            prop_assert_eq!(CostFile::parse(&cost_file.text()).unwrap().estimator(&scope()), known);
        }
    }

    #[test]
    fn noise_is_no_file_of_costs(text in ".*") {
        prop_assert!(CostFile::parse(&text).is_err());
    }
}

const UNSEEN: cost::Line = cost::Line { fixed_ns: 61_000, per_byte_ps: 2_500 };

#[test]
fn what_clocks_do_not_show_of_a_module_outlives_the_run_that_measured_it() {
    let mut learned = learned();
    learned.keep_overhead(0, UNSEEN);
    let mut cost_file = cost_file();
    cost_file.renew(&scope(), &learned, 1_795_304_001);
    let text = cost_file.text();
    assert!(text.contains("module slow\t1.0\nunseen 61000 2500\nmodule fast"), "{text}");
    // A run that measures none keeps the one that is there, and the other module has none.
    let mut again = CostFile::parse(&text).unwrap();
    again.renew(&scope(), &scope().no_costs(), 1_795_304_002);
    let known = again.estimator(&scope());
    assert_eq!((known.overhead(0), known.overhead(1)), (Some(UNSEEN), None));
}

#[test]
fn what_clocks_do_not_show_stands_below_a_module_once_and_is_a_sane_number() {
    let with = |lines: &str| CostFile::parse(&format!("{}{lines}", &FILE[..FILE.find("d AES").unwrap()]));
    let most = with("unseen 18446744073709551615 9999999\n").unwrap().estimator(&scope());
    assert_eq!(most.overhead(1), Some(OVERHEAD_MAX));
    let wrong = |lines| with(lines).err().map(|bad| bad.wrong);
    assert_eq!(wrong("unseen 2 2\nunseen 2 2\n"), Some(Wrong::Twice));
    assert_eq!(wrong("unseen -1 2\n"), Some(Wrong::Number));
    assert_eq!(wrong("unseen 2\n"), Some(Wrong::Number));
    assert_eq!(wrong("unseen 2 2 2\n"), Some(Wrong::TooLong));
    assert_eq!(wrong("plain OpenSSL 3.0.19\nunseen 2 2\n"), Some(Wrong::NoSource));
}

#[test]
fn what_another_version_wrote_is_left_out_and_the_rest_is_known() {
    let read = |from: &str, to: &str| CostFile::parse(&FILE.replacen(from, to, 1)).unwrap();
    // An older version's line is passed over without a word.
    let older = read("2.0\nd AES", "2.0\nfactor 1.47\nd AES");
    assert_eq!((older.clone(), older.unknown_line()), (cost_file(), None));
    // A newer one's is named; what was read before it and after the next source counts.
    let newer = read("2.0\nd AES", "2.0\nwatts 3\nd AES");
    assert_eq!(newer.unknown_line(), Some(9));
    assert_eq!((newer.sources().count(), newer.estimator(&scope()).all_on_module(1).count()), (3, 0));
    // Costs of an unknown source are given to no other source.
    let other = read("multi-buffer libipsec", "gpu libipsec");
    let known = other.estimator(&scope());
    assert_eq!((other.unknown_line(), known.all_cpu().count()), (Some(6), 1));
    assert_eq!(known.all_on_module(1).count(), 1);
}
