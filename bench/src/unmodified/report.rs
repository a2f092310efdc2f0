//! The table: what each program took by each configuration beside plain, as JSON and as a page.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::configuration::Configuration;
use super::place::{Counts, Used};
use super::program::Asked;
use crate::medians::Quartiles;

/// All programs that were measured, or could not be.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Table {
    /// In the order of the list of programs.
    pub programs: Vec<Measured>,
}

/// One program.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Measured {
    /// Its name.
    pub name: String,
    /// What it does in a run.
    pub what: String,
    /// Date, machine, libraries, versions, load, how core time is counted.
    pub circumstances: Vec<String>,
    /// Lines of the provider's section for the configuration that is made by hand.
    pub hand: Vec<String>,
    /// A figure to reach.
    pub asked: Option<Asked>,
    /// Where plain's time goes.
    pub profile: Profile,
    /// One for each configuration.
    pub rows: Vec<Row>,
}

/// Where a program's time goes, parts of 1.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Profile {
    /// How the share was found.
    pub by: String,
    /// The cipher's share of plain's core time.
    pub cipher: f64,
    /// The files in which plain's samples lie, the greatest first.
    pub files: Vec<(String, f64)>,
    /// The provider's share of core time by `default`: of its kernels, for it does nothing else by itself.
    pub provider: Option<f64>,
    /// The cipher alone in GB/s: by OpenSSL, and with the provider as it is installed.
    pub rates: [f64; 2],
}

/// One configuration.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Row {
    /// Its name.
    pub configuration: String,
    /// Each round's.
    pub runs: Vec<Used>,
    /// Core time in seconds.
    pub core_s: Quartiles,
    /// Wall time in seconds.
    pub wall_s: Quartiles,
    /// Core time over plain's of the same round.
    pub core: Quartiles,
    /// Wall time over plain's of the same round.
    pub wall: Quartiles,
    /// What processes counted in the last run: direct, kernel, combined, split, routed.
    pub counts: Counts,
}

/// The rows of what was used in each round, in the order of configurations; a round has one of each.
///
/// # Panics
///
/// Never where there is a round and each configuration ran in it.
#[must_use]
pub fn rows(runs: &BTreeMap<Configuration, Vec<Used>>, counts: &BTreeMap<Configuration, Counts>) -> Vec<Row> {
    let plain = runs.get(&Configuration::Plain).map_or(&[][..], Vec::as_slice);
    let row = |(configuration, own): (&Configuration, &Vec<Used>)| {
        let seconds = |of: fn(&Used) -> f64| Quartiles::of(&own.iter().map(of).collect::<Vec<_>>());
        let over = |of: fn(&Used) -> f64| {
            Quartiles::of(&own.iter().zip(plain).map(|(own, plain)| of(own) / of(plain)).collect::<Vec<_>>())
        };
        let [core, wall]: [fn(&Used) -> f64; 2] = [|it| it.core_s, |it| it.wall_s];
        Some(Row {
            configuration: configuration.name().to_owned(),
            runs: own.clone(),
            core_s: seconds(core)?,
            wall_s: seconds(wall)?,
            core: over(core)?,
            wall: over(wall)?,
            counts: counts.get(configuration).copied().unwrap_or_default(),
        })
    };
    runs.iter().filter_map(row).collect()
}

impl Profile {
    /// What would be left of plain's core time were the cipher free, and with the provider's code as fast as it is alone.
    #[must_use]
    pub fn bounds(&self) -> [f64; 2] {
        let [plain, ours] = self.rates;
        let quicker = if plain > 0.0 && ours > 0.0 { plain / ours } else { 1.0 };
        [1.0 - self.cipher, 1.0 - self.cipher * (1.0 - quicker)]
    }

    fn sentence(&self) -> String {
        let files: Vec<_> =
            self.files.iter().map(|(file, share)| format!("{file} {:.0} %", share * 100.0)).collect();
        let [free, ours] = self.bounds();
        let mut text =
            format!("The cipher has {:.0} % of plain's core time ({})", self.cipher * 100.0, self.by);
        if !files.is_empty() {
            let _infallible = write!(text, "; samples lie in {}", files.join(", "));
        }
        let _infallible = write!(
            text,
            ". Were it free, {free:.2} would be left; `openssl speed` has {:.2} GB/s alone and {:.2} by `default`, which would leave {ours:.2}",
            self.rates[0], self.rates[1]
        );
        if let Some(provider) = self.provider {
            let _infallible =
                write!(text, ". By `default` the provider has {:.0} % of the samples", provider * 100.0);
        }
        text
    }
}

/// Whether a ratio is no greater than `most`, where its quartiles agree about that.
fn is_at_most(ratio: &Quartiles, most: f64) -> Option<bool> {
    match (ratio.upper <= most, ratio.lower > most) {
        (true, _) => Some(true),
        (_, true) => Some(false),
        _ => None,
    }
}

fn in_words(it: &Quartiles) -> String {
    format!("{:.3} [{:.3} {:.3}]", it.median, it.lower, it.upper)
}

impl Measured {
    fn row(&self, configuration: Configuration) -> Option<&Row> {
        self.rows.iter().find(|row| row.configuration == configuration.name())
    }

    /// Whether `default` takes more core time than plain, and whether the asked figure is reached: said as a fact where both quartiles are on one side.
    #[must_use]
    pub fn verdict(&self) -> String {
        let Some(row) = self.row(Configuration::Default) else { return String::new() };
        let rounds = row.runs.len();
        let mut said = Vec::new();
        match is_at_most(&row.core, 1.0) {
            Some(false) => {
                said.push(format!("**`default` takes more core time than plain: {:.3}.**", row.core.median));
            }
            None if row.core.median > 1.0 => said.push(format!(
                "Whether `default` takes more core time than plain is not settled by {rounds} rounds: {}.",
                in_words(&row.core)
            )),
            _ => {}
        }
        if let Some(asked) = self.asked {
            let (best, clock) = self.best(asked, row);
            let word = match is_at_most(&best, asked.ratio_max) {
                Some(true) => "Reached".to_owned(),
                Some(false) => "**Not reached**".to_owned(),
                None => format!("Not settled by {rounds} rounds"),
            };
            said.push(format!(
                "{word}: asked {:.2} of plain's {clock} time, is {}.",
                asked.ratio_max,
                in_words(&best)
            ));
        }
        said.join(" ")
    }

    /// Core time is asked of the provider as it is installed; wall time, for which a second core is spent, of what a user sets.
    fn best(&self, asked: Asked, default: &Row) -> (Quartiles, &'static str) {
        if !asked.is_wall {
            return (default.core, "core");
        }
        let hand = self.row(Configuration::Hand).filter(|hand| hand.wall.median < default.wall.median);
        (hand.unwrap_or(default).wall, "wall")
    }

    /// Lines for a terminal.
    #[must_use]
    pub fn to_text(&self) -> String {
        let [cipher, hand, circumstances] = self.facts();
        let verdict = self.verdict();
        let end = if verdict.is_empty() { "\n" } else { "\n\n" };
        format!("{}\n{cipher}.\nBy hand: {hand}. {circumstances}.\n{verdict}{end}", self.ratios())
    }

    /// The same as a part of the page.
    fn to_section(&self) -> String {
        let [cipher, hand, circumstances] = self.facts();
        let mut text = self.ratios();
        text += "\n| | |\n|---|---|\n";
        for (what, fact) in [("bounds", cipher), ("by hand", hand), ("measured", circumstances)] {
            let _infallible = writeln!(text, "| {what} | {fact} |");
        }
        let _infallible = writeln!(text, "\n{}\n", self.verdict());
        text
    }

    /// What bounds it, what is set by hand, and how it was measured.
    fn facts(&self) -> [String; 3] {
        let rounds = self.rows.first().map_or(0, |row| row.runs.len());
        let circumstances = format!("{rounds} rounds. {}", self.circumstances.join("; "));
        [self.profile.sentence(), format!("`{}`", self.hand.join("`, `")), circumstances]
    }

    /// Its heading and the ratios of all configurations.
    fn ratios(&self) -> String {
        let mut text = format!("## {}\n{}\n\n", self.name, self.what);
        text += "| | core s | over plain | wall s | over plain | direct, kernel, combined, split, routed |\n|---|---|---|---|---|---|\n";
        for row in &self.rows {
            let counts = match row.counts {
                [0, 0, 0, 0, 0] => "not counted".to_owned(),
                counts => counts.map(|count| count.to_string()).join(", "),
            };
            let _infallible = writeln!(
                text,
                "| {} | {:.3} | {} | {:.3} | {} | {counts} |",
                row.configuration,
                row.core_s.median,
                in_words(&row.core),
                row.wall_s.median,
                in_words(&row.wall)
            );
        }
        text
    }
}

impl Table {
    /// Takes what was measured now in place of what was measured before under the same name; `order` are all names.
    pub fn put(&mut self, measured: Measured, order: &[&str]) {
        self.programs.retain(|old| old.name != measured.name);
        self.programs.push(measured);
        self.programs.sort_by_key(|program| order.iter().position(|name| *name == program.name));
    }

    /// The page of results.
    #[must_use]
    pub fn to_page(&self) -> String {
        let mut text = HEAD.to_owned();
        text += "| program | cipher's share | were it free | malloc set | off | default | by hand | asked |\n|---|---|---|---|---|---|---|---|\n";
        for program in &self.programs {
            let is_wall = program.asked.is_some_and(|it| it.is_wall);
            let of = |configuration| {
                let clock = |row: &Row| in_words(if is_wall { &row.wall } else { &row.core });
                program.row(configuration).map_or_else(String::new, clock)
            };
            // The share is one of core time, and bounds no wall time.
            let (share, free) = match is_wall {
                true => (String::new(), String::new()),
                false => (
                    format!("{:.0} %", program.profile.cipher * 100.0),
                    format!("{:.2}", program.profile.bounds()[0]),
                ),
            };
            let asked = program.asked.map_or_else(
                || "no more than 1".to_owned(),
                |it| format!("{:.2}{}", it.ratio_max, if is_wall { " (wall)" } else { "" }),
            );
            let _infallible = writeln!(
                text,
                "| {} | {share} | {free} | {} | {} | {} | {} | {asked} |",
                program.name,
                of(Configuration::MallocSet),
                of(Configuration::Off),
                of(Configuration::Default),
                of(Configuration::Hand)
            );
        }
        text.push('\n');
        text + &self.programs.iter().map(Measured::to_section).collect::<String>()
    }
}

const HEAD: &str = "\
# Unmodified programs

`evener bench programs` wrote this page: programs as Debian installs them, with OpenSSL alone (*plain*), with two thresholds of glibc's malloc set (*malloc set*), with the provider off (*off*), as it is installed (*default*), and with what a user who knows the program would write
(*by hand*). They take turns; figures are medians of the ratios within a round and quartiles. Core time is that of all the program's processes but a server's clients. Each by itself: `evener bench programs NAME`; `--install` installs what it needs.

- *Asked* is the most of plain's core time that *default* may take; of wall time, where that stands, the better of *default* and *by hand*. Reached, or not, is what both quartiles say; else it is not settled.
- *Cipher's share* and *were it free* are parts of plain's core time. *Not counted*: the provider counted no request, for it is not loaded, off, or leaves this cipher to OpenSSL's own code.
- What came out of each run was compared with what should.

";

#[cfg(test)]
mod tests {
    use super::*;

    fn used(seconds: &[(f64, f64)]) -> Vec<Used> {
        seconds.iter().map(|&(wall_s, core_s)| Used { wall_s, core_s }).collect()
    }

    /// Plain drifts by four between rounds, and the ratio stays.
    fn measured(default: f64, asked: Option<Asked>) -> Measured {
        let plain = [(2.0, 1.0), (4.0, 2.0), (8.0, 4.0)];
        let default: Vec<_> = plain.iter().map(|(wall, core)| (wall * 0.5, core * default)).collect();
        let runs =
            BTreeMap::from([(Configuration::Plain, used(&plain)), (Configuration::Default, used(&default))]);
        let counts = BTreeMap::from([(Configuration::Default, [1, 2, 3, 4, 5])]);
        Measured {
            name: "one".to_owned(),
            what: "does something".to_owned(),
            circumstances: Vec::new(),
            hand: vec!["kernels = on".to_owned()],
            asked,
            profile: Profile { cipher: 0.4, rates: [2.0, 8.0], ..Profile::default() },
            rows: rows(&runs, &counts),
        }
    }

    #[test]
    fn a_ratio_is_taken_within_its_round_however_much_rounds_differ() {
        let it = measured(0.75, None);
        let row = it.row(Configuration::Default).unwrap();
        assert_eq!(row.core, Quartiles { lower: 0.75, median: 0.75, upper: 0.75 });
        assert_eq!(row.wall, Quartiles { lower: 0.5, median: 0.5, upper: 0.5 });
        assert_eq!((row.core_s.median, row.wall_s.median, row.counts), (1.5, 2.0, [1, 2, 3, 4, 5]));
        assert_eq!(it.row(Configuration::Plain).unwrap().core.median, 1.0);
    }

    #[test]
    fn the_bound_is_what_the_cipher_does_not_have() {
        let [free, ours] = measured(1.0, None).profile.bounds();
        // 0.6, and a quarter of 0.4 besides.
        assert!((free - 0.6).abs() < 1e-9 && (ours - 0.7).abs() < 1e-9);
        let unknown = Profile { cipher: 0.4, ..Profile::default() };
        assert!((unknown.bounds()[1] - 1.0).abs() < 1e-9);
    }

    /// The same with these quartiles of `default`'s core time.
    fn strayed(lower: f64, median: f64, upper: f64, asked: Option<Asked>) -> String {
        let mut it = measured(median, asked);
        for row in it.rows.iter_mut().filter(|row| row.configuration == Configuration::Default.name()) {
            row.core = Quartiles { lower, median, upper };
        }
        it.verdict()
    }

    #[test]
    fn a_default_that_takes_more_than_plain_is_named_and_one_that_takes_less_is_not() {
        assert!(measured(1.02, None).verdict().contains("more core time than plain: 1.020"));
        assert_eq!(measured(0.98, None).verdict(), "");
        assert!(measured(0.98, Some(Asked::core(0.9))).verdict().contains("Not reached"));
        assert!(measured(0.88, Some(Asked::core(0.9))).verdict().starts_with("Reached"));
        assert!(measured(1.3, Some(Asked { ratio_max: 0.7, is_wall: true })).verdict().contains("Reached"));
    }

    #[test]
    fn a_figure_between_the_quartiles_is_not_settled() {
        let asked = Some(Asked::core(0.9));
        assert!(strayed(0.80, 0.85, 0.95, asked).starts_with("Not settled by 3 rounds"));
        assert!(strayed(0.85, 0.95, 0.97, asked).starts_with("Not settled by 3 rounds"));
        assert!(strayed(0.80, 0.85, 0.90, asked).starts_with("Reached"));
        assert!(strayed(0.91, 0.95, 0.97, asked).starts_with("**Not reached**"));
        let more = strayed(0.99, 1.03, 1.06, None);
        assert!(more.contains("not settled by 3 rounds") && !more.contains("**"), "{more}");
        assert_eq!(strayed(0.90, 0.98, 1.06, None), "");
        assert!(strayed(1.01, 1.03, 1.06, None).starts_with("**`default` takes more"));
    }

    #[test]
    fn a_row_of_wall_times_has_no_share_and_no_bound_of_core_time() {
        let mut table = Table::default();
        table.put(measured(1.0, Some(Asked { ratio_max: 0.7, is_wall: true })), &["one"]);
        let page = table.to_page();
        assert!(page.contains("| one |  |  |") && page.contains("| 0.70 (wall) |"), "{page}");
    }

    #[test]
    fn a_program_that_is_measured_again_takes_its_own_place_in_the_table() {
        let mut table = Table::default();
        let order = ["one", "two"];
        table.put(Measured { name: "two".to_owned(), ..measured(1.0, None) }, &order);
        table.put(measured(1.0, None), &order);
        table.put(measured(0.5, None), &order);
        let names: Vec<_> = table.programs.iter().map(|it| it.name.as_str()).collect();
        assert_eq!(names, order);
        assert!((table.programs[0].rows[1].core.median - 0.5).abs() < 1e-9);
        let page = table.to_page();
        assert!(page.contains("| one | 40 % | 0.60 |") && page.contains("0.500 [0.500 0.500]"), "{page}");
        let read: Table = serde_json::from_str(&crate::to_json(&table)).unwrap();
        assert_eq!(read, table);
    }
}
