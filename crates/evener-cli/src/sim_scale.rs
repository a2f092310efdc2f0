//! `evener sim scale`: the plan past this machine. Cell -> simulated run, its decisions timed -> one line.

use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use evener::core::plan::Dispatch;
use evener_sim::lab::{Choice, Chooser, Sample, View};
use evener_sim::scale::{CORES, Cell, Figures, Mix, STREAMS};

use crate::say::{self, Exit, Shown};

/// Simulates the adaptive policy on machines of 1 to 256 cores and 1 to 64 modules, under 1 to 100 000 streams.
///
/// A stream hands in one job after another at chance times, 100 TLS records or 10 files per second on average, and does
/// not wait for answers. Costs are those of paper 002's AM3358, each core and each module being one of it. Throughput
/// stands beside the greatest that cores' time, modules' time and the coming of jobs allow. A run has 100 jobs for each
/// worker, but 2000 to 12000 (200 where there is one stream), so that the grid takes a minute at most. Everything is
/// simulated but the last two columns: questions of workers and the time that decisions took on this machine.
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
    spent: Duration,
}

impl<C> Timed<C> {
    fn time<T>(&mut self, of: impl FnOnce(&mut C) -> T) -> T {
        let start = Instant::now();
        let answer = of(&mut self.inner);
        self.spent += start.elapsed();
        answer
    }
}

impl<C: Chooser> Chooser for Timed<C> {
    fn dispatch(&self) -> Dispatch {
        self.inner.dispatch()
    }

    fn cpu_takes(&mut self, index: u32, view: &View<'_>) -> Choice {
        self.questions += 1;
        self.time(|inner| inner.cpu_takes(index, view))
    }

    fn module_takes(&mut self, index: u32, view: &View<'_>) -> Choice {
        self.questions += 1;
        self.time(|inner| inner.module_takes(index, view))
    }

    fn observe(&mut self, sample: &Sample) {
        self.time(|inner| inner.observe(sample));
    }

    fn lose(&mut self, index: u32) {
        self.inner.lose(index);
    }
}

/// A cell with what came of it.
struct Row {
    cell: Cell,
    figures: Figures,
    /// Questions of workers for each job, and wall time of all answers and of learning for each job, in nanoseconds.
    questions: f64,
    decision_ns: f64,
}

pub(crate) fn run(arguments: &Grid) -> anyhow::Result<Exit> {
    let is_asked = |wanted: Option<u32>, has: u32| wanted.is_none_or(|wanted| wanted == has);
    let cells = Cell::grid()
        .filter(|cell| is_asked(arguments.cores, cell.cores) && is_asked(arguments.streams, cell.streams));
    let rows: Vec<Row> = cells.map(row).collect::<anyhow::Result<_>>()?;
    anyhow::ensure!(!rows.is_empty(), "the grid has no such cell; cores are {CORES:?}, streams {STREAMS:?}");
    if let Some(path) = &arguments.csv {
        fs::write(path, csv(&rows)).with_context(|| format!("cannot write {}", Shown(path)))?;
    }
    say::answer(table(&rows).as_bytes())
}

fn row(cell: Cell) -> anyhow::Result<Row> {
    let (figures, timed) = cell
        .run(|inner| Timed { inner, questions: 0, spent: Duration::ZERO })
        .with_context(|| format!("{cell:?}"))?;
    let jobs = f64::from(figures.jobs);
    let decision_ns = timed.spent.as_secs_f64() * 1e9 / jobs;
    Ok(Row { cell, figures, questions: f64::from(timed.questions) / jobs, decision_ns })
}

fn table(rows: &[Row]) -> String {
    let mut text = String::from(
        "Simulated, but for the last two columns. Cores and modules of paper 002's AM3358; a stream hands in 100 TLS\n\
         records or 10 files per second and waits for none. load: what comes over what the machine can do at its best.\n\
         of best: throughput over the greatest that cores, modules and arrivals allow. Measured on this machine:\n\
         questions of workers and nanoseconds of look-ups, plans and learning, per job.\n\n\
         mix         streams cores modules   jobs     load      jobs/s     MB/s of best module %     p99 ms  quest.      ns\n",
    );
    for Row { cell, figures, questions, decision_ns } in rows {
        writeln!(
            text,
            "{:<11} {:>7} {:>5} {:>7} {:>6} {:>8.3} {:>11.0} {:>8.1} {:>7.3} {:>8.0} {:>10.2} {:>7.1} {:>7.0}",
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
         measured_questions_per_job,measured_decision_ns_per_job\n",
    );
    for Row { cell, figures, questions, decision_ns } in rows {
        let Cell { mix, streams, cores, modules } = cell;
        let p99_ms = figures.p99.as_secs_f64() * 1e3;
        let Figures { jobs, load, jobs_per_s, bytes_per_s, of_bound, module_share, .. } = figures;
        writeln!(
            text,
            "{},{streams},{cores},{modules},{jobs},{load},{jobs_per_s},{bytes_per_s},{of_bound},{module_share},{p99_ms},\
             {questions},{decision_ns}",
            mix.name()
        )
        .expect("a text takes a line");
    }
    text
}
