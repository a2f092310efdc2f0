//! Two pictures by `evener bench crypt`: this processor, and an experiment with an emulated module, beside `evener explain`.

use std::fs;

use anyhow::Context as _;

use super::page::{Part, Section};
use super::session::read;
use super::stage::{Stage, say, say_indented};
use super::{Demo, Shown};

const SIZES: &str = "64,256,1K,4K,16K";
/// A module of which two papers tell every cost, and the processor beside it.
const EMULATED: &str = "--module emulated:am3358 --cpu-cost emulated:am3358";
/// Sizes of which one is for the core, one for the module, and one between.
const EXPLAINED: [&str; 3] = ["256", "4K", "64K"];

pub(super) fn this_processor(stage: &Stage<'_>, arguments: &Demo) -> anyhow::Result<Shown> {
    let words =
        format!("bench crypt --algorithm AES-128-CBC --sizes {SIZES} --count 1000 {}", visits(arguments));
    let caption = "How many MB of messages are encrypted in a second, by the size of a message: higher is faster. The black line is the \
                   bound: cores that only copy the same bytes.";
    let picture = picture(stage, &words, "methods", caption)?;
    let section = Section { title: "AES-128-CBC on this processor".to_owned(), parts: vec![picture] };
    Ok(Shown { section, ..Shown::default() })
}

pub(super) fn emulated_module(stage: &Stage<'_>, arguments: &Demo) -> anyhow::Result<Shown> {
    say("The module is EMULATED, as is the processor beside it: no figure is a speed of Evener")?;
    let mut section = Section::new("One crypto module, emulated");
    section.parts.push(Part::Sentence(
        "There need not be a module here: this one, and the slow processor beside it, are emulated from published costs. No figure below is a speed of \
         Evener. Small jobs stay on the core, because a request to the module costs more than it saves; evener explain says so for one job."
            .to_owned(),
    ));
    for size in EXPLAINED {
        let words = format!("explain --algorithm AES-128-CBC --size {size} {EMULATED}");
        let said = stage.evener(&words)?;
        say_indented(&said)?;
        section.parts.push(Part::Screen(format!("$ evener {words}\n{said}")));
    }
    let words = format!(
        "bench crypt --algorithm AES-128-CBC --sizes {SIZES} --workers 1 --count 60 {} --policies {POLICIES} {EMULATED}",
        visits(arguments)
    );
    let caption = "The same axes: who decides well which jobs go to the module is near the black line, the bound, at every size; \
                   adaptive is Evener's way.";
    section.parts.push(picture(stage, &words, "emulated", caption)?);
    Ok(Shown { section, ..Shown::default() })
}

const POLICIES: &str = "cpu_only,module_only,round_robin,polling,shared_queue,adaptive";

/// How often each contender is visited, and for how long, in `bench crypt`'s words.
fn visits(arguments: &Demo) -> String {
    let time = arguments.cell_time.map(|time| format!(" --cell-time {time}"));
    format!("--runs {}{}", arguments.runs, time.unwrap_or_default())
}

/// Draws one, and keeps it with its figures.
fn picture(stage: &Stage<'_>, words: &str, name: &str, caption: &str) -> anyhow::Result<Part> {
    let [svg, json] = ["svg", "json"].map(|kind| stage.kept(&format!("{name}.{kind}")));
    stage.evener_with(words, &[("--svg", &svg), ("--json", &json)])?;
    read(&json)?;
    let drawn = fs::read_to_string(&svg).with_context(|| format!("cannot read {}", svg.display()))?;
    say(format!("  {}", svg.display()))?;
    Ok(Part::Picture { svg: drawn, caption: caption.to_owned() })
}
