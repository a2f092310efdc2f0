//! `evener sim papers`: the papers' tables drawn again, with what the models say.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use evener_bench::plot::{self, Scale, Series};
use evener_sim::report::{Line, Picture, Report};

use crate::terminal::{Exit, PathDisplay, output, waiting};

/// Prints the papers' tables with the models' figures and errors beside them.
///
/// Says for each column what was fitted on what, which of the papers' claims their own tables contradict, and what is
/// not reproduced. Every figure that was not printed in a paper is simulated; none of the machines is at hand.
#[derive(clap::Args)]
pub(crate) struct Papers {
    /// Writes the same as CSV files: one for each table, and models.csv, claims.csv, not_reproduced.csv.
    #[arg(long, value_name = "DIR")]
    csv: Option<PathBuf>,

    /// Draws the tables that a model explains.
    #[arg(long, value_name = "DIR")]
    svg: Option<PathBuf>,
}

pub(crate) fn run(arguments: &Papers) -> anyhow::Result<Exit> {
    let report = waiting::said_while("simulating the papers' machines", |_| Report::new())?;
    if let Some(directory) = &arguments.csv {
        create(directory)?;
        for file in report.to_csv() {
            let path = directory.join(file.name);
            fs::write(&path, file.text).with_context(|| format!("cannot write {}", PathDisplay(&path)))?;
        }
    }
    if let Some(directory) = &arguments.svg {
        create(directory)?;
        for picture in report.pictures() {
            draw(directory, picture)?;
        }
    }
    output::answer(report.to_text().as_bytes())
}

fn create(directory: &Path) -> anyhow::Result<()> {
    fs::create_dir_all(directory).with_context(|| format!("cannot create {}", PathDisplay(directory)))
}

fn draw(directory: &Path, picture: Picture) -> anyhow::Result<()> {
    let path = directory.join(picture.name + ".svg");
    let series = |line: Line| Series { name: line.name, points: line.points, dashed: line.is_model };
    let series: Vec<Series> = picture.lines.into_iter().map(series).collect();
    plot::lines(&path, &picture.title, "size of a job", picture.unit, Scale::Logarithmic, &series)?;
    Ok(())
}
