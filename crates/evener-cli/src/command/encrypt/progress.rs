//! A line that moves while a run goes on: on a terminal only.

use std::fmt;
use std::sync::atomic::Ordering;

use evener_files::Progress;
use indicatif::{ProgressBar, ProgressState, ProgressStyle};

use crate::terminal::{units, waiting};

/// Columns below which a line says less.
const WIDE: usize = 64;

/// What a run is at, as far as is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// Nothing is read yet, for the key comes first.
    Key,
    /// How much there is, is not known, or not yet.
    Unknown,
    /// So far of so much.
    Known,
    /// All was worked on, and has to reach the disk.
    Syncing,
}

impl Stage {
    fn of(progress: &Progress, is_key_dear: bool) -> Self {
        let [bytes, total] =
            [&progress.bytes, &progress.total_bytes].map(|count| count.load(Ordering::Relaxed));
        match (bytes, total) {
            (0, _) if is_key_dear => Self::Key,
            (bytes, total @ 1..) if bytes >= total => Self::Syncing,
            (_, 1..) => Self::Known,
            (_, 0) => Self::Unknown,
        }
    }

    const fn template(self, is_wide: bool) -> &'static str {
        match (self, is_wide) {
            (Self::Key, _) => "{spinner} deriving the passphrase's key",
            (Self::Syncing, _) => "{spinner} {binary_bytes} done, syncing",
            (Self::Known, true) => {
                "{percent:>3} %  {binary_bytes} of {binary_total_bytes}  {binary_bytes_per_sec}  {left}{msg}  {wide_bar}"
            }
            (Self::Known, false) => "{percent:>3} %  {binary_bytes_per_sec}  {left}",
            (Self::Unknown, true) => "{spinner} {binary_bytes}  {binary_bytes_per_sec}  {msg}",
            (Self::Unknown, false) => "{spinner} {binary_bytes}  {binary_bytes_per_sec}",
        }
    }
}

/// Runs `work`, and draws `progress` meanwhile where `wanted` and standard error is a terminal. `is_key_dear` says that a key is derived
/// before anything is read.
pub(crate) fn shown_while<R>(
    progress: &Progress,
    wanted: bool,
    is_key_dear: bool,
    work: impl FnOnce() -> R,
) -> R {
    if !wanted || !waiting::is_watched() {
        return work();
    }
    progress.is_watched.store(true, Ordering::Relaxed);
    let bar = ProgressBar::new_spinner();
    let mut shown = None;
    let look = |is_over: bool| {
        if is_over {
            return bar.finish_and_clear();
        }
        let look = (Stage::of(progress, is_key_dear), waiting::columns() >= WIDE);
        if shown != Some(look) {
            shown = Some(look);
            bar.set_style(style(look.0.template(look.1)));
        }
        let total = progress.total_bytes.load(Ordering::Relaxed);
        if total > 0 {
            bar.set_length(total);
        }
        bar.set_position(progress.bytes.load(Ordering::Relaxed));
        bar.set_message(units::counted(progress.files.load(Ordering::Relaxed), "file"));
        bar.tick();
    };
    waiting::painted_while(look, work)
}

fn style(template: &str) -> ProgressStyle {
    let style = ProgressStyle::with_template(template).expect("the templates above are well formed");
    style.with_key("left", |state: &ProgressState, text: &mut dyn fmt::Write| {
        write_left(state.eta().as_secs(), text).ok();
    })
}

/// The time that is left; nothing where it is less than a second, for that is as good as unknown.
fn write_left(seconds: u64, text: &mut dyn fmt::Write) -> fmt::Result {
    match seconds {
        0 => Ok(()),
        1..=99 => write!(text, "{seconds} s left  "),
        100..=5_999 => write!(text, "{} min left  ", seconds.div_ceil(60)),
        _ => write!(text, "{} h left  ", seconds.div_ceil(3_600)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_that_has_worked_on_all_is_syncing_and_one_whose_key_is_dear_derives_it_first() {
        let progress = Progress::default();
        assert_eq!([true, false].map(|dear| Stage::of(&progress, dear)), [Stage::Key, Stage::Unknown]);
        progress.bytes.store(5, Ordering::Relaxed);
        assert_eq!(Stage::of(&progress, true), Stage::Unknown);
        for (total, stage) in [(6, Stage::Known), (5, Stage::Syncing), (4, Stage::Syncing)] {
            progress.total_bytes.store(total, Ordering::Relaxed);
            assert_eq!(Stage::of(&progress, true), stage);
        }
    }

    #[test]
    fn no_time_left_is_not_said() {
        let said = |seconds| {
            let mut text = String::new();
            write_left(seconds, &mut text).unwrap();
            text
        };
        assert_eq!(
            [0, 1, 99, 100, 7_200].map(said),
            ["", "1 s left  ", "99 s left  ", "2 min left  ", "2 h left  "]
        );
    }
}
