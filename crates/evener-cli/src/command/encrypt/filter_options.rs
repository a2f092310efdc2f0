//! Options that leave names out below a directory.

use anyhow::anyhow;
use evener_files::Filter;

#[derive(clap::Args)]
#[command(next_help_heading = "Files")]
pub(super) struct FilterOptions {
    /// Leaves out what GLOB matches, as in .gitignore.
    ///
    /// Below a directory: *.tmp, /cache/, a/**/b. Names are those of the source. May be repeated.
    #[arg(long, value_name = "GLOB")]
    exclude: Vec<String>,

    /// Takes only files that GLOB matches.
    ///
    /// --exclude stands over it. May be repeated.
    #[arg(long, value_name = "GLOB")]
    include: Vec<String>,
}

impl FilterOptions {
    pub(super) fn filter(&self) -> anyhow::Result<Filter> {
        Filter::new(&self.include, &self.exclude).map_err(|error| anyhow!("{error}"))
    }
}
