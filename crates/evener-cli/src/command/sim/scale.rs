//! `evener sim scale`: the plan past this machine. Cell -> simulated run, its decisions timed -> one line.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use evener::core::plan::Dispatch;
use evener_sim::lab::{Choice, Chooser, Sample, View};
use evener_sim::scale::{CORES, Cell, Figures, Mix, STREAMS};

use crate::terminal::{Exit, ResultsFile, output, waiting};

/// Simulates the adaptive policy on machines of 1 to 256 cores and 1 to 64 modules, under 1 to 100 000 streams.
///
/// A stream hands in one job after another at chance times, 100 TLS records or 10 files per second on average, and does
/// not wait for answers. Costs are those of paper 002's AM3358, each core and each module being one of it. Throughput
/// stands beside the greatest that cores' time, modules' time and the coming of jobs allow. A run has 400 jobs for each
/// worker, but 10000 to 40000 (200 where there is one stream). Everything is simulated but the last three columns:
/// questions of workers and the time that decisions took on this machine.
#[derive(clap::Args)]
pub(crate) struct Grid {
    /// Writes the same as a CSV file.
    #[arg(long, value_name = "FILE")]
    csv: Option<PathBuf>,

    /// Runs only the machines of so many cores: 1, 2, 8, 64 or 256.
    #[arg(long, value_name = "N")]
    cores: Option<u32>,

    /// Runs only so many streams: 1, 1000 or 100000.
    #[arg(long, value_name = "N")]
    streams: Option<u32>,
}

/// A chooser whose answers are timed. A reading of the clock is part of each time: some 20 to 50 ns.
struct Timed<C> {
    inner: C,
    questions: u32,
    /// For answers that gave a job, and for learning from one: what the core that does it pays.
    paid: Duration,
    /// For answers that gave none, to workers that had nothing to do.
    in_vain: Duration,
}

impl<C> Timed<C> {
    const fn new(inner: C) -> Self {
        Self { inner, questions: 0, paid: Duration::ZERO, in_vain: Duration::ZERO }
    }

    fn timed(&mut self, of: impl FnOnce(&mut C) -> Choice) -> Choice {
        self.questions += 1;
        let start = Instant::now();
        let choice = of(&mut self.inner);
        let took = start.elapsed();
        *(if matches!(choice, Choice::Take { .. }) { &mut self.paid } else { &mut self.in_vain }) += took;
        choice
    }
}

impl<C: Chooser> Chooser for Timed<C> {
    fn dispatch(&self) -> Dispatch {
        self.inner.dispatch()
    }

    fn cpu_takes(&mut self, index: u32, view: &View<'_>) -> Choice {
        self.timed(|inner| inner.cpu_takes(index, view))
    }

    fn module_takes(&mut self, index: u32, view: &View<'_>) -> Choice {
        self.timed(|inner| inner.module_takes(index, view))
    }

    fn observe(&mut self, sample: &Sample) {
        let start = Instant::now();
        self.inner.observe(sample);
        self.paid += start.elapsed();
    }

    fn lose(&mut self, index: u32) {
        self.inner.lose(index);
    }
}

/// A cell with what came of it.
struct Row {
    cell: Cell,
    figures: Figures,
    /// Questions of workers for each job, and wall time of decisions for each job, in nanoseconds: what the core that
    /// does the job pays, and what idle workers spend besides.
    questions: f64,
    decision_ns: f64,
    idle_ns: f64,
}

pub(crate) fn run(arguments: &Grid) -> anyhow::Result<Exit> {
    let csv_file = ResultsFile::open(arguments.csv.as_ref())?;
    let is_asked = |wanted: Option<u32>, has: u32| wanted.is_none_or(|wanted| wanted == has);
    let cells = Cell::grid()
        .filter(|cell| is_asked(arguments.cores, cell.cores) && is_asked(arguments.streams, cell.streams));
    let cells: Vec<Cell> = cells.collect();
    let all = cells.len();
    let rows = waiting::said_while("simulating", |waiting| {
        let row = |(number, cell): (usize, Cell)| {
            waiting.say(format!(
                "simulating {} of {all}: {} cores, {} streams",
                number + 1,
                cell.cores,
                cell.streams
            ));
            row(cell)
        };
        cells.into_iter().enumerate().map(row).collect::<anyhow::Result<Vec<Row>>>()
    })?;
    anyhow::ensure!(!rows.is_empty(), "the grid has no such cell; cores are {CORES:?}, streams {STREAMS:?}");
    let kept = csv_file.map_or(Ok(()), |file| file.write(&csv(&rows)));
    output::answer_beside(kept, table(&rows).as_bytes())
}

fn row(cell: Cell) -> anyhow::Result<Row> {
    let (figures, timed) = cell.run(Timed::new).with_context(|| format!("{cell:?}"))?;
    let jobs = f64::from(figures.jobs);
    let ns = |time: Duration| time.as_secs_f64() * 1e9 / jobs;
    let questions = f64::from(timed.questions) / jobs;
    Ok(Row { cell, figures, questions, decision_ns: ns(timed.paid), idle_ns: ns(timed.in_vain) })
}

fn table(rows: &[Row]) -> String {
    let mut text = String::from(
        "Simulated, but for the last three columns. Cores and modules of paper 002's AM3358; a stream hands in 100 TLS\n\
         records or 10 files per second and waits for none. load: what comes over what the machine can do at its best.\n\
         of best: throughput over the greatest that cores, modules and arrivals allow. Measured on this machine:\n\
         questions of workers per job, and nanoseconds of look-ups, plans and learning per job: those of the core that\n\
         does it, and those of workers that have nothing to do.\n\n\
         mix         streams cores modules   jobs     load      jobs/s     MB/s of best module %     p99 ms  quest.      ns  idle ns\n",
    );
    for Row { cell, figures, questions, decision_ns, idle_ns } in rows {
        writeln!(
            text,
            "{:<11} {:>7} {:>5} {:>7} {:>6} {:>8.3} {:>11.0} {:>8.1} {:>7.3} {:>8.0} {:>10.2} {:>7.1} {:>7.0} {:>8.0}",
            cell.mix.name(),
            cell.streams,
            cell.cores,
            cell.modules,
            figures.jobs,
            figures.load,
            figures.jobs_per_s,
            figures.bytes_per_s / 1e6,
            figures.of_bound,
            100.0 * figures.module_share,
            figures.p99.as_secs_f64() * 1e3,
            questions,
            decision_ns,
            idle_ns,
        )
        .expect("a text takes a line");
    }
    text + "\n" + &summary(rows)
}

/// The least and the middle of what was reached, for each mix and number of streams.
fn summary(rows: &[Row]) -> String {
    let mut text = String::new();
    for mix in Mix::ALL {
        for streams in STREAMS {
            let of = rows.iter().filter(|row| row.cell.mix == mix && row.cell.streams == streams);
            let mut reached: Vec<f64> = of.map(|row| row.figures.of_bound).collect();
            reached.sort_by(f64::total_cmp);
            let Some(&least) = reached.first() else { continue };
            let middle = reached[reached.len() / 2];
            writeln!(
                text,
                "{}, {streams} streams: of best {least:.3} at least, {middle:.3} in the middle",
                mix.name()
            )
            .expect("a text takes a line");
        }
    }
    text
}

fn csv(rows: &[Row]) -> String {
    let mut text = String::from(
        "mix,streams,cores,modules,jobs,load,jobs_per_s,bytes_per_s,of_best,module_share,p99_ms,\
         measured_questions_per_job,measured_decision_ns_per_job,measured_idle_ns_per_job\n",
    );
    for Row { cell, figures, questions, decision_ns, idle_ns } in rows {
        let Cell { mix, streams, cores, modules } = cell;
        let p99_ms = figures.p99.as_secs_f64() * 1e3;
        let Figures { jobs, load, jobs_per_s, bytes_per_s, of_bound, module_share, .. } = figures;
        writeln!(
            text,
            "{},{streams},{cores},{modules},{jobs},{load},{jobs_per_s},{bytes_per_s},{of_bound},{module_share},{p99_ms},\
             {questions},{decision_ns},{idle_ns}",
            mix.name()
        )
        .expect("a text takes a line");
    }
    text
}
