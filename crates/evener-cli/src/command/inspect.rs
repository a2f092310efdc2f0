//! `evener inspect`: what the outside of encrypted files says. No key is asked for.

use std::fs::File;
use std::io::{Read, stdin};
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use evener_fd::open_named;
use evener_files::{Inspection, inspect};
use rustix::fs::OFlags;

use crate::terminal::{Exit, PathDisplay, output};

/// Shows what can be seen of an encrypted file without a key.
///
/// Its format, the kinds of its recipients, lengths. With --json as `age-inspect --json` does: an object for each file, one a line.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  evener inspect secret.age
  evener inspect --json backup.age | jq .sizes.max_payload")]
pub(crate) struct Inspect {
    /// Encrypted files; `-` is standard input.
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,

    /// Writes JSON.
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(arguments: &Inspect) -> anyhow::Result<Exit> {
    let mut exit = Exit::Done;
    for file in &arguments.files {
        match look(file) {
            Ok(seen) if arguments.json => {
                output::answer(format!("{}\n", serde_json::to_string(&seen)?).as_bytes())?;
            }
            Ok(seen) => drop(output::answer(text(file, &seen).as_bytes())?),
            Err(error) => {
                output::line(format_args!(
                    "{}: {}",
                    PathDisplay(file),
                    output::one_line(&format!("{error:#}"))
                ));
                exit = Exit::SomeFailed;
            }
        }
    }
    Ok(exit)
}

fn look(file: &Path) -> anyhow::Result<Inspection> {
    let input: Box<dyn Read + Send> = match file {
        file if file == Path::new("-") => Box::new(stdin()),
        file => {
            Box::new(File::from(open_named(file, OFlags::RDONLY | OFlags::NOCTTY).context("cannot read")?))
        }
    };
    Ok(inspect(input)?)
}

fn text(file: &Path, Inspection { version, postquantum, armor, stanza_types, sizes }: &Inspection) -> String {
    let range =
        |least: u64, most: u64| if least == most { format!("{most}") } else { format!("{least} to {most}") };
    let armored = if *armor { format!("\n  armor      {} bytes", sizes.armor) } else { String::new() };
    format!(
        "{}: {version}\n  for        {}\n  quantum    {postquantum}{armored}\n  header     {} bytes\n  overhead   {} bytes\n  \
         plaintext  {} bytes\n",
        PathDisplay(file),
        // What a header says is a stranger's.
        PathDisplay(Path::new(&stanza_types.join(", "))),
        sizes.header,
        sizes.overhead,
        range(sizes.min_payload, sizes.max_payload),
    )
}
