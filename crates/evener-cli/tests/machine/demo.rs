//! `evener demo`: what a stranger sees of it. Times are never judged.
#![allow(clippy::unwrap_used, reason = "a test")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::LazyLock;
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::common::{Place, files, skipped, there_is};
use rustix::process::{Pid, Signal, kill_process, test_kill_process};

const SMALL: [&str; 7] = ["demo", "--size", "1M", "--runs", "1", "--cell-time", "5"];

/// Evener's module, as it is built beside these tests.
fn module() -> PathBuf {
    std::env::current_exe().unwrap().with_file_name("libevener_provider.so")
}

/// A folder with nothing but links to these programs, where they are.
fn only(place: &Place, programs: &[&str]) -> PathBuf {
    let bin = place.join("bin");
    fs::create_dir(&bin).unwrap();
    for name in programs {
        let found = ["/usr/bin", "/bin"].map(|folder| Path::new(folder).join(name));
        std::os::unix::fs::symlink(found.iter().find(|path| path.exists()).unwrap(), bin.join(name)).unwrap();
    }
    bin
}

#[test]
fn one_page_has_both_pictures_and_every_figure_and_nothing_else_is_left() {
    let Some(place) = Place::with_programs(&["openssl", "diff"]) else { return };
    // Whose GCM is faster, a build that is not optimised cannot tell.
    let ran = place
        .evener()
        .args(SMALL)
        .arg("--module")
        .arg(module())
        .env("EVENER_KERNELS", "on")
        .run()
        .succeeded();
    let said = ran.stdout_text();
    let page = fs::read_to_string(place.join("demo/index.html")).unwrap();
    assert!(page.ends_with("</html>\n") && !page.contains("<script"), "no whole page, or one with a script");
    assert_eq!(page.matches("<svg ").count(), 2);
    for text in
        ["MB/s", "bound: nobody waits", "bound: a copy", "EMULATED", "AES-256-GCM encrypt", "evener age"]
    {
        assert!(page.contains(text), "{text} is not on the page");
    }
    assert_eq!(page.contains("Without age"), !there_is("age"));
    assert_eq!(page.contains("<td>age</td>"), there_is("age"));
    assert!(said.contains("no difference") || said.contains("every byte is the same"), "{said}");
    let last: Vec<&str> = said.lines().rev().take(2).collect();
    assert!(last[0].starts_with("Next: ") && last[0].contains("demo/index.html"), "{said}");
    assert!(last[1].starts_with("Result: ") && last[1].contains("openssl"), "{said}");
    let kept = files(&place.join("demo"));
    let names = ["emulated.json", "emulated.svg", "files.json", "index.html", "methods.json", "methods.svg"];
    assert_eq!(kept, names.map(PathBuf::from));
    assert_eq!(fs::read_dir(place.join("demo")).unwrap().count(), names.len(), "a folder is left");
}

/// What is said, and the page, where neither age nor OpenSSL's command is installed; run once.
fn without_others() -> &'static (String, String) {
    static RAN: LazyLock<(String, String)> = LazyLock::new(|| {
        let place = Place::new();
        let bin = only(&place, &["diff", "cp", "xargs"]);
        let ran = place.evener().args(SMALL).arg("other").env("PATH", bin).run().succeeded();
        (ran.stdout_text().to_owned(), fs::read_to_string(place.join("other/index.html")).unwrap())
    });
    &RAN
}

#[test]
fn every_step_is_named_with_its_time_before_the_first_begins_and_again_when_it_does() {
    let (said, _) = without_others();
    let (plan, steps) = said.split_once("\n\n").unwrap();
    assert!(
        plan.contains("in about ")
            && plan.contains("Nothing is downloaded")
            && plan.contains("kept, in other"),
        "{plan}"
    );
    let planned: Vec<&str> = plan.lines().skip(1).collect();
    assert!(planned.len() >= 4, "{plan}");
    for (number, line) in planned.iter().enumerate() {
        let (_, name) = line.split_once(". ").unwrap();
        assert!(name.contains("(about ") && name.ends_with(" s)"), "{line}");
        assert!(steps.contains(&format!("== {} of {}: {name}\n", number + 1, planned.len())), "{said}");
    }
}

#[test]
fn what_is_not_installed_is_said_at_the_end_and_on_the_page() {
    let (said, page) = without_others();
    for name in ["Without age: ", "Without openssl: ", "Without the provider: "] {
        assert!(page.contains(name), "{name} is not on the page");
        assert!(said.contains(&format!("\n{name}")), "{said}");
    }
    assert_eq!(page.matches("<svg ").count(), 2);
}

/// The process that a demo has started and waits for.
fn child_of(pid: u32) -> Option<Pid> {
    let text = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).ok()?;
    Pid::from_raw(text.split_whitespace().next()?.parse().ok()?)
}

#[test]
fn a_signal_leaves_nothing_running_and_no_page() {
    let place = Place::new();
    let mut run = place.evener_at_a_prompt().args(["demo", "--size", "64M", "--runs", "100"]);
    run.command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut demo = run.command.spawn().unwrap();
    let pid = demo.id();
    let end = Instant::now() + Duration::from_secs(60);
    let child = loop {
        match child_of(pid) {
            Some(child) => break child,
            None if demo.try_wait().unwrap().is_some() || Instant::now() > end => {
                return skipped("this system does not tell a process's children");
            }
            None => sleep(Duration::from_millis(2)),
        }
    };
    kill_process(Pid::from_raw(pid.try_into().unwrap()).unwrap(), Signal::INT).unwrap();
    let ended = demo.wait().unwrap();
    assert_eq!(std::os::unix::process::ExitStatusExt::signal(&ended), Some(2));
    assert!(test_kill_process(child).is_err(), "what it had started still runs");
    assert_eq!(fs::read_dir(place.join("demo")).unwrap().count(), 0, "something is left");
}
