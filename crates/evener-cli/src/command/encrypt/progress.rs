//! A line that moves while a run goes on: on a terminal only.

use std::io::{IsTerminal as _, stderr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use evener_files::Progress;
use indicatif::{ProgressBar, ProgressStyle};

/// Time between two looks, short enough to seem alive.
const BETWEEN_LOOKS: Duration = Duration::from_millis(100);

const KNOWN: &str = "{percent:>3} %  {binary_bytes} of {binary_total_bytes}  {binary_bytes_per_sec}  \
                     {eta} left  {msg}  {wide_bar}";
const UNKNOWN: &str = "{spinner} {binary_bytes}  {binary_bytes_per_sec}  {msg}";

/// Runs `work`, and draws `progress` meanwhile where `wanted` and standard error is a terminal.
///
/// Where `TERM` is not set or `dumb`, indicatif draws nothing: such a terminal cannot redraw a line.
pub(crate) fn shown_while<R>(progress: &Progress, wanted: bool, work: impl FnOnce() -> R) -> R {
    if !wanted || !stderr().is_terminal() {
        return work();
    }
    progress.is_watched.store(true, Ordering::Relaxed);
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        // Where no thread is to be had, nothing is drawn.
        let painter = thread::Builder::new().spawn_scoped(scope, || draw(progress, &over)).ok();
        let _ending = OnDrop(|| {
            over.store(true, Ordering::Relaxed);
            painter.iter().for_each(|painter| painter.thread().unpark());
        });
        work()
    })
}

fn draw(progress: &Progress, over: &AtomicBool) {
    let bar = ProgressBar::new_spinner().with_style(style(UNKNOWN));
    let mut total_is_known = false;
    while !over.load(Ordering::Relaxed) {
        let total = progress.total_bytes.load(Ordering::Relaxed);
        if total > 0 && !total_is_known {
            total_is_known = true;
            bar.set_style(style(KNOWN));
            bar.set_length(total);
        }
        bar.set_position(progress.bytes.load(Ordering::Relaxed));
        bar.set_message(crate::terminal::units::counted(progress.files.load(Ordering::Relaxed), "file"));
        bar.tick();
        thread::park_timeout(BETWEEN_LOOKS);
    }
    bar.finish_and_clear();
}

fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).expect("the templates above are well formed")
}

/// Ends the drawing also where the work panics; else the scope would wait for ever.
struct OnDrop<F: FnMut()>(F);

impl<F: FnMut()> Drop for OnDrop<F> {
    fn drop(&mut self) {
        (self.0)();
    }
}
