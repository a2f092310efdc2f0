//! What `evener devices` shows of the costs that earlier runs learned, and how it forgets them.

use std::fmt::Write as _;

use anyhow::Context as _;
use evener::core::estimate::text::{CostFile, Source};
use evener_machine::Machine;
use evener_machine::cost_cache;
use serde::Serialize;

use crate::terminal::{Exit, PathDisplay, output, units};

/// What earlier runs learned of the costs of jobs.
#[derive(Serialize)]
pub(crate) struct CostCacheView {
    /// Where they are kept between runs.
    file: Option<String>,
    /// When they were learned, or why there are none.
    state: String,
    /// When they were written, in seconds since 1970.
    saved_s: Option<u64>,
    sources: Vec<CostSource>,
}

#[derive(Serialize)]
struct CostSource {
    name: String,
    /// Library or module behind it, with version.
    detail: String,
    /// Classes of jobs whose costs are known.
    classes: usize,
    #[serde(skip)]
    line: String,
}

impl CostCacheView {
    pub(crate) fn read(machine: &Machine) -> Self {
        let file = cost_cache::file(&machine.processor);
        let held = file
            .as_ref()
            .map_or_else(|| Ok(CostFile::default()), |file| cost_cache::read(file, &machine.cost_scope()));
        let (cost_file, complaint) =
            held.map_or_else(|it| (CostFile::default(), Some(it)), |cost_file| (cost_file, None));
        let sources: Vec<CostSource> = cost_file.sources().map(CostSource::new).collect();
        let saved_s = (!sources.is_empty()).then_some(cost_file.saved_s);
        let age = |saved_s| units::age(cost_cache::now_s().saturating_sub(saved_s));
        let state = match (saved_s, complaint) {
            (Some(saved_s), _) => format!("learned by earlier runs, the last one {} ago", age(saved_s)),
            (None, Some(complaint)) => format!("cannot be used: {complaint}"),
            (None, None) => "nothing was learned yet".to_owned(),
        };
        Self { file: file.map(|file| PathDisplay(&file).to_string()), state, saved_s, sources }
    }

    pub(crate) fn text(&self) -> String {
        let mut text = format!("\nCosts ({})\n", self.state);
        for source in &self.sources {
            writeln!(text, "  {}", source.line).expect("a String takes everything");
        }
        if let (Some(file), [_, ..]) = (&self.file, &self.sources[..]) {
            writeln!(text, "  kept in {file}").expect("a String takes everything");
        }
        text
    }
}

impl CostSource {
    fn new((source, classes): (&Source, usize)) -> Self {
        let (name, detail) = name_and_detail(source);
        Self { name: name.to_owned(), detail: detail.to_owned(), classes, line: source_text(source, classes) }
    }
}

/// Removes the costs and says which.
pub(crate) fn forget(machine: &Machine) -> anyhow::Result<Exit> {
    let nothing = "nothing was learned yet, so there is nothing to forget\n".to_owned();
    let Some(file) = cost_cache::file(&machine.processor) else { return output::answer(nothing.as_bytes()) };
    let held = cost_cache::read(&file, &machine.cost_scope());
    let shown = PathDisplay(&file).to_string();
    let answer = match (cost_cache::remove(&file).with_context(|| format!("cannot remove {shown}"))?, held) {
        (false, _) => nothing,
        (true, Ok(cost_file)) => {
            let sources =
                cost_file.sources().map(|(source, count)| format!("  {}\n", source_text(source, count)));
            format!("removed {shown}\n{}", sources.collect::<String>())
        }
        (true, Err(_)) => format!("removed {shown}, which could not be read\n"),
    };
    output::answer(answer.as_bytes())
}

/// `plain, 12 classes of jobs (OpenSSL 3.0.19)`.
fn source_text(source: &Source, classes: usize) -> String {
    let (name, detail) = name_and_detail(source);
    let classes = if classes == 1 { "1 class".to_owned() } else { format!("{classes} classes") };
    format!("{name}, {classes} of jobs ({detail})")
}

fn name_and_detail(source: &Source) -> (&str, &str) {
    match source {
        Source::Cpu(method, library) => (method.name(), library),
        Source::Module(name, detail) => (name, detail),
    }
}
