//! `evener bench tls`: who measures, what comes of it, and what is said where something fails. Times are judged only where a delay was
//! planted, and then by that delay.
#![allow(clippy::unwrap_used, reason = "a test")]

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::process::{Child, ChildStderr, Command, Stdio};

use crate::common::{self, EVENER, Place, Ran, Run, misfits, skipped};
use serde_json::Value;

const CBC: &str = "tls1.2-cbc";

/// A place with Evener's module, as it is built beside these tests, in a folder `modules`.
fn place() -> Option<Place> {
    let place = Place::with_programs(&["curl", "openssl"])?;
    let beside = std::env::current_exe().unwrap().with_file_name("libevener_provider.so");
    fs::create_dir(place.join("modules")).unwrap();
    fs::copy(beside, place.join("modules/evener.so")).unwrap();
    Some(place)
}

fn bench(place: &Place, words: &[&str]) -> Run {
    let run = place.evener().args(["bench", "tls", "--module", "modules/evener.so", "--json", "report.json"]);
    run.args(words).args(["--dir", "."])
}

/// One upload of one size, as the paper's browser made it.
const ONCE: [&str; 6] = ["--suites", CBC, "--sizes", "57654", "--rounds", "1"];

/// The report, which fits its schema.
fn report(place: &Place) -> Value {
    let report = serde_json::from_slice(&fs::read(place.join("report.json")).unwrap()).unwrap();
    assert_eq!(misfits("bench-tls.schema.json", &report), [""; 0]);
    report
}

fn ways(row: &Value) -> Vec<&str> {
    row["ways"].as_array().unwrap().iter().map(|way| way["way"].as_str().unwrap()).collect()
}

/// The one sentence of a command that failed.
fn sentence(ran: &Ran) -> String {
    last_words(ran.code(), ran.stderr())
}

fn last_words(code: Option<i32>, stderr: &str) -> String {
    let is_progress = |line: &&str| line.starts_with("evener: measuring ");
    let lines: Vec<&str> = stderr.lines().skip_while(is_progress).collect();
    assert_eq!((code, lines.len()), (Some(2), 1), "{stderr}");
    lines[0].to_owned()
}

#[test]
fn curl_measures_with_the_provider_at_either_end_in_every_suite() {
    let Some(place) = place() else { return };
    bench(&place, &["--clients", "curl", "--sizes", "70,57654", "--rounds", "2", "--set", "threshold=4096"])
        .run()
        .succeeded();
    let report = report(&place);
    assert_eq!(report["clients"][0]["can_offload"], true, "{:#}", report["clients"]);
    let rows = report["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 3 * 2 * 2, "suites, directions, sizes");
    for row in rows {
        assert_eq!(ways(row), ["without", "both", "client", "server"]);
        let cipher = match row["suite"].as_str().unwrap() {
            CBC => "ECDHE-ECDSA-AES128-SHA256",
            "tls1.2-gcm" => "ECDHE-ECDSA-AES128-GCM-SHA256",
            _ => "TLS_AES_128_GCM_SHA256",
        };
        assert_eq!(
            (&row["cipher"], &row["encrypt_then_mac"]),
            (&cipher.into(), &(row["suite"] == CBC).into())
        );
        for way in row["ways"].as_array().unwrap() {
            assert_eq!(way["values_ms"].as_array().unwrap().len(), 2);
            assert_eq!(way["ratio"].is_null(), way["way"] == "without");
            assert!(way["core_ms"]["min"].as_f64().unwrap() > 0.0);
            let phases: f64 =
                way["phases"].as_object().unwrap().values().map(|ms| ms.as_f64().unwrap()).sum();
            assert!(phases <= 1.5 * way["ms"]["max"].as_f64().unwrap(), "phases are parts: {way:#}");
        }
    }
    let paper = rows.iter().find(|row| row["direction"] == "up" && row["bytes"] == 57_654).unwrap();
    assert_eq!((&paper["paper"]["with_ms"], &paper["paper"]["without_ms"]), (&442.0.into(), &436.0.into()));
    let left: Vec<_> = fs::read_dir(place.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert!(!left.iter().any(|name| name.to_string_lossy().starts_with("evener-tls-")), "{left:?}");
}

/// The same by a server of other hands, which keeps no account of requests.
#[test]
fn nginx_serves_the_same_page_to_the_same_clients() {
    let Some(place) = place() else { return };
    // The one that `x` unpacked for tests, else an installed one.
    let unpacked = concat!(env!("CARGO_MANIFEST_DIR"), "/../../target/foreign/nginx/usr/sbin/nginx");
    let Some(nginx) = [unpacked, "/usr/sbin/nginx"].into_iter().find(|path| fs::exists(path).unwrap()) else {
        let said = sentence(&bench(&place, &["--server", "nginx"]).run());
        assert!(said.contains("nginx is not installed"), "{said}");
        return skipped("nginx is not installed");
    };
    let words = ["--server", nginx, "--clients", "curl,qtwebkit"];
    bench(&place, &words).args(ONCE).args(["--directions", "up,form,down"]).run().succeeded();
    let report = report(&place);
    assert!(report["server"].as_str().unwrap().starts_with("nginx"));
    for row in report["rows"].as_array().unwrap() {
        assert_eq!(ways(row), ["without", "both", "client", "server"]);
        assert!(row["ways"][0]["ms"]["min"].as_f64().unwrap() > 0.0);
    }
}

#[test]
fn a_page_server_without_a_setup_says_so() {
    let place = Place::new();
    let said = sentence(&place.evener().args(["bench", "tls", "--end"]).run());
    assert!(said.contains("a page server needs its setup"), "{said}");
}

/// Measures one size with a browser; nothing, said in print, where it is not installed.
fn browser(place: &Place, name: &str, words: &[&str]) -> Option<Value> {
    let words = [&["--clients", name, "--timeout", "300"][..], words].concat();
    let ran = bench(place, &words).run();
    if let Some((_, missing)) = ran.stderr().split_once("there is no client to measure with: ") {
        skipped(missing.trim());
        return None;
    }
    ran.succeeded();
    Some(report(place))
}

#[test]
fn qtwebkit_offloads_itself_by_the_systems_openssl() {
    let Some(place) = place() else { return };
    let words = ["--suites", CBC, "--sizes", "57654", "--rounds", "1", "--directions", "up,form,down"];
    let Some(report) = browser(&place, "qtwebkit", &words) else { return };
    let facts = &report["clients"][0];
    assert_eq!(facts["can_offload"], true);
    assert!(facts["tls_library"].as_str().unwrap().starts_with("OpenSSL 3"), "{facts:#}");
    let rows = report["rows"].as_array().unwrap();
    let directions: Vec<_> = rows.iter().map(|row| row["direction"].as_str().unwrap()).collect();
    assert_eq!(directions, ["up", "form", "down"]);
    for row in rows {
        assert_eq!(ways(row), ["without", "both", "client", "server"]);
        assert_eq!(
            (&row["cipher"], &row["encrypt_then_mac"]),
            (&"ECDHE-ECDSA-AES128-SHA256".into(), &true.into())
        );
        assert!(row["ways"][0]["core_ms"]["min"].as_f64().unwrap() > 0.0);
    }
}

#[test]
fn chromium_is_a_client_of_a_server_that_offloads() {
    let Some(place) = place() else { return };
    let words = [
        "--suites",
        "tls1.2-cbc,tls1.2-gcm",
        "--sizes",
        "57654",
        "--rounds",
        "1",
        "--directions",
        "up,form,down",
    ];
    let Some(report) = browser(&place, "chromium", &words) else { return };
    assert_eq!(
        (&report["clients"][0]["can_offload"], &report["clients"][0]["tls_library"]),
        (&false.into(), &"BoringSSL, inside it".into())
    );
    let mut handshakes = 0;
    for row in report["rows"].as_array().unwrap() {
        assert_eq!(ways(row), ["without", "server"]);
        // Its only suite in CBC has SHA-1 and RSA, and the MAC before the cipher.
        let cipher =
            if row["suite"] == CBC { "ECDHE-RSA-AES128-SHA" } else { "ECDHE-ECDSA-AES128-GCM-SHA256" };
        assert_eq!((&row["cipher"], &row["encrypt_then_mac"]), (&cipher.into(), &false.into()));
        for way in row["ways"].as_array().unwrap() {
            let phases: Vec<_> = way["phases"].as_object().unwrap().keys().collect();
            // The browser may have opened a connection before it was asked for one: then no handshake is part of the request.
            let has_handshake = phases.contains(&&"tls".to_owned());
            handshakes += usize::from(has_handshake);
            let all = ["connect", "request", "response", "tls"];
            assert_eq!(
                phases,
                all[..3 + usize::from(has_handshake)],
                "Resource Timing and Navigation Timing"
            );
        }
    }
    assert!(handshakes > 0, "a browser that connects ahead does so now and then only");
}

/// Whole: all suites and sizes, both ways, by everyone who is there.
#[test]
#[ignore = "minutes: hundreds of megabytes through browsers"]
fn all_clients_measure_all_sizes_in_all_suites() {
    let Some(place) = place() else { return };
    bench(&place, &["--rounds", "1", "--directions", "up,form,down"]).run().succeeded();
    let report = report(&place);
    for facts in report["clients"].as_array().unwrap().iter().filter(|facts| !facts["missing"].is_null()) {
        skipped(facts["missing"].as_str().unwrap());
    }
    let present = report["clients"].as_array().unwrap().iter().filter(|facts| facts["missing"].is_null());
    for facts in present {
        let rows = report["rows"].as_array().unwrap().iter().filter(|row| row["client"] == facts["client"]);
        let directions = if facts["client"] == "curl" { 2 } else { 3 };
        assert_eq!(rows.count(), 3 * 9 * directions, "{facts:#}");
    }
    let of_curl = report["claims"].as_array().unwrap().iter().filter(|of| of["client"] == "curl");
    assert_eq!(of_curl.count(), 3 * 3, "suites, and the provider at the client, the server and both");
}

/// Measures an upload with a delay of the servers; what is longest must be where it was planted.
fn plant(planted: &str) {
    let Some(place) = place() else { return };
    let plant = format!("{planted}=1500");
    let words =
        ["--clients", "curl", "--suites", CBC, "--sizes", "57654", "--rounds", "1", "--directions", "up"];
    let bench =
        place.evener().args(["bench", "tls", "--module", "none", "--json", "report.json", "--plant", &plant]);
    bench.args(words).run().succeeded();
    let report = report(&place);
    let phases = report["rows"][0]["ways"][0]["phases"].as_object().unwrap();
    let ms = |name: &str| phases[name].as_f64().unwrap();
    assert!(ms(planted) >= 1_500.0, "{report:#}");
    let longest = phases.keys().max_by(|one, other| ms(one).total_cmp(&ms(other))).unwrap();
    assert_eq!(longest, planted, "{report:#}");
}

#[test]
fn a_slow_handshake_shows_in_its_phase() {
    plant("tls");
}

#[test]
fn a_server_that_reads_slowly_shows_in_the_request() {
    plant("request");
}

#[test]
fn a_server_that_answers_slowly_shows_in_the_response() {
    plant("response");
}

/// A page server that waits for browsers, ended when dropped.
struct Serving {
    child: Child,
    /// What it says on standard error.
    lines: std::io::Lines<BufReader<ChildStderr>>,
    url: String,
}

impl Serving {
    fn start(place: &Place, words: &[&str]) -> Self {
        let mut command = Command::new(EVENER);
        command.current_dir(place.path()).args(["bench", "tls", "--serve", "--module", "modules/evener.so"]);
        command.args(["--listen", "127.0.0.1", "--port", "0", "--suites", CBC]).args(words);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut url = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut url).unwrap();
        let (url, lines) = (url.trim().to_owned(), BufReader::new(child.stderr.take().unwrap()).lines());
        Self { child, lines, url }
    }

    fn curl(&self, place: &Place, words: &[&str]) -> Ran {
        place.program("curl").args(["-q", "-sS", "-k", "--noproxy", "*"]).args(words).run()
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

#[test]
fn a_client_that_leaves_in_the_middle_is_told_of_and_the_next_is_served() {
    let Some(place) = place() else { return };
    let mut serving = Serving::start(&place, &[]);
    place.write("large", "x".repeat(4 << 20));
    let up = format!("{}/up?id=a.1", serving.url);
    let slow = ["--limit-rate", "200K", "--max-time", "2", "-H", "Expect:", "-X", "POST", "-T", "large", &up];
    assert_eq!(serving.curl(&place, &slow).code(), Some(28), "curl gave up");
    let said = serving.lines.next().unwrap().unwrap();
    assert!(
        said.contains("the client left after ") && said.contains(" of 4194304 bytes of its upload"),
        "{said}"
    );
    let whole = serving.curl(&place, &["-X", "POST", "-T", "large", &up]).succeeded();
    assert_eq!(whole.stdout_text(), "{}");
}

#[test]
fn what_pages_post_is_kept_and_reported_on() {
    let Some(place) = place() else { return };
    let mut serving = Serving::start(&place, &["--json", "pages"]);
    let page = serving.curl(&place, &[&serving.url]).succeeded();
    assert!(page.stdout_text().contains("<title>Evener"), "{}", page.stdout_text());
    let setup = serving.curl(&place, &[&format!("{}/setup.json", serving.url)]).succeeded();
    let setup: Value = serde_json::from_str(setup.stdout_text()).unwrap();
    assert_eq!(setup["ends"].as_array().unwrap().len(), 2);
    for (round, ms) in [(1, 200.0), (2, 100.0)] {
        let measurement = |end: &str, ms: f64| {
            serde_json::json!({ "id": "a.1", "round": round, "direction": "up", "bytes": 70, "end": end, "ms": ms,
                "client_core_ms": null, "phases": null, "navigation": null, "server": null })
        };
        let posted = serde_json::json!({ "schema": "evener-tls-page/1", "session": "a", "agent": "a test", "label": null,
            "suite": CBC, "rounds": 1, "sizes": [70], "measured_in_ms": 1.0,
            "measurements": [measurement("default", ms), measurement("evener", ms * 0.75)] });
        assert_eq!(misfits("tls-page.schema.json", &posted), [""; 0]);
        place.write("posted", posted.to_string());
        let result = format!("{}/result/a", serving.url);
        serving.curl(&place, &["-X", "PUT", "--data-binary", "@posted", &result]).succeeded();
        serving.lines.next().unwrap().unwrap();
    }
    let kept = fs::read_to_string(place.join("pages")).unwrap();
    assert_eq!(kept.lines().count(), 2);
    for line in kept.lines() {
        assert_eq!(misfits("tls-page.schema.json", &serde_json::from_str(line).unwrap()), [""; 0]);
    }
    bench(&place, &["--pages", "pages"]).run().succeeded();
    let row = &report(&place)["rows"][0];
    assert_eq!(
        (&row["ways"][1]["way"], &row["ways"][1]["ratio"]["median"]),
        (&"server".into(), &0.75.into())
    );
}

/// On a phone and on a wide screen: what must be there is, nothing is wider than the screen, and all of it came from this host.
#[test]
fn the_page_shows_words_curves_and_values_at_any_width() {
    let Some(place) = place() else { return };
    let python = "/usr/bin/python3";
    if !common::there_is("chromium") || !fs::exists(python).unwrap() {
        return skipped("chromium is not installed");
    }
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../bench/clients/chromium_page.py");
    let serving = Serving::start(&place, &[]);
    let plan = "/?auto=1&suite=tls1.2-cbc&rounds=1&sizes=70,57654,2359350&directions=up,down";
    for width in ["390", "1280"] {
        let url = format!("{}{plan}&session=w{width}", serving.url);
        let words =
            [script, &url, width, "shown.png", place.join(width).to_str().unwrap()].map(str::to_owned);
        let ran = place.program(python).args(words).run().succeeded();
        let facts: Value = serde_json::from_str(ran.stdout_text()).unwrap();
        assert_eq!(facts["title"], "evener: done", "{facts:#}");
        let number = |name: &str| facts[name].as_u64().unwrap();
        assert_eq!(number("width").to_string(), width);
        assert!(number("content_width") <= number("width"), "{facts:#}");
        assert_eq!((number("curves"), number("rows")), (2, 1 + 3 * 2));
        let headings = [
            "Uploads and downloads over TLS",
            "What is better, and by how much",
            "Uploads",
            "Downloads",
            "All values",
        ];
        assert_eq!(facts["headings"], serde_json::json!(headings));
        assert!(facts["sentences"].as_array().unwrap().len() >= 6, "{facts:#}");
        assert_eq!(facts["elsewhere"], serde_json::json!([]));
        assert!(fs::read(place.join("shown.png")).unwrap().starts_with(b"\x89PNG"));
    }
}

/// Paper 003's claims, over a table whose verdicts were worked out by hand.
#[test]
fn the_papers_claims_are_held_against_what_was_measured() {
    let Some(place) = place() else { return };
    let sizes = [70, 57_654, 2_359_350, 3_240_054, 6_350_454, 14_288_454, 15_046_694, 18_207_342, 18_948_662];
    let without = [86.0, 96.0, 490.0, 640.0, 1_180.0, 2_550.0, 2_680.0, 3_230.0, 3_360.0];
    let page = |label: &str, factor: &dyn Fn(usize) -> f64| {
        let rows: Vec<Value> = (0..9)
            .map(|at| serde_json::json!({ "id": "a", "round": 1, "direction": "form", "bytes": sizes[at], "end": "default",
                "ms": without[at] * factor(at), "client_core_ms": null, "phases": null, "navigation": null, "server": null }))
            .collect();
        serde_json::json!({ "schema": "evener-tls-page/1", "session": "a", "agent": "a test", "label": label, "suite": CBC,
            "rounds": 1, "sizes": sizes, "measured_in_ms": null, "measurements": rows }).to_string()
    };
    let verdicts = |factor: &dyn Fn(usize) -> f64| {
        place.write("pages", format!("{}\n{}\n", page("x:default", &|_| 1.0), page("x:evener", factor)));
        bench(&place, &["--pages", "pages"]).run().succeeded();
        let claims = report(&place)["claims"][0]["claims"].as_array().unwrap().clone();
        let paper: Vec<_> =
            claims.iter().map(|claim| claim["holds_in_the_paper"].as_bool().unwrap()).collect();
        assert_eq!(paper, [true, true, false], "the paper's own table");
        claims.iter().map(|claim| claim["holds"].as_bool().unwrap()).collect::<Vec<_>>()
    };
    // Never slower, a third faster at the end: small files do not lose, and it is not 44 %; the difference grows.
    assert_eq!(verdicts(&|at| [1.0, 0.99, 0.7][at.min(2)]), [false, false, true]);
    // As in the paper: small ones lose, 44 % at the end, and the last difference is smaller than the one before.
    assert_eq!(verdicts(&|at| [1.1, 1.01, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.56][at]), [true, true, false]);
}

#[test]
fn a_server_that_dies_in_the_middle_is_one_sentence() {
    let Some(place) = place() else { return };
    // Its answer takes a minute, of which this test waits for nothing.
    let words = ["--clients", "curl", "--plant", "request=60000"];
    let mut command = Command::new(EVENER);
    command
        .current_dir(place.path())
        .args(["bench", "tls", "--module", "modules/evener.so"])
        .args(words)
        .args(ONCE);
    command.stdout(Stdio::null()).stderr(Stdio::piped()).stdin(Stdio::null());
    let child = command.spawn().unwrap();
    let mut server = None;
    let uploads = evener_testing::waiting::soon(|| {
        let children =
            fs::read_to_string(format!("/proc/{0}/task/{0}/children", child.id())).unwrap_or_default();
        let pids: Vec<&str> = children.split_whitespace().collect();
        let name = |pid: &&&str| fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
        let uploads = pids.iter().any(|pid| name(&pid).trim() == "curl");
        server = pids.iter().find(|pid| name(pid).trim() == "evener").map(|pid| pid.parse::<i32>().unwrap());
        uploads && server.is_some()
    });
    assert!(uploads, "curl does not upload");
    let pid = rustix::process::Pid::from_raw(server.unwrap()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
    let output = child.wait_with_output().unwrap();
    let text = last_words(output.status.code(), &String::from_utf8_lossy(&output.stderr));
    let expected = "the page server without Evener's provider ended while it measured (signal: 9 (SIGKILL))";
    assert!(text.contains(expected), "{text}");
}

#[test]
fn a_certificate_that_does_not_fit_is_one_sentence() {
    let Some(place) = place() else { return };
    let make = |name: &str, subject: &str| {
        let words = format!(
            "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj {subject} -keyout {name}.key -out {name}.pem"
        );
        place.program("openssl").args(words.split(' ')).run().succeeded();
    };
    make("good", "/CN=localhost");
    make("other", "/CN=elsewhere.example");
    place.write("empty.pem", "");
    let start = |certificate: &str, key: &str| {
        let words = ["--clients", "curl", "--suites", CBC, "--sizes", "70", "--rounds", "1"];
        sentence(&bench(&place, &words).args(["--certificate", certificate, "--key", key]).run())
    };
    let said = start("good.pem", "other.key");
    assert!(
        said.contains("other.key is not the key of good.pem: name the one that belongs to it by --key"),
        "{said}"
    );
    let said = start("empty.pem", "good.key");
    assert!(said.contains("empty.pem holds no certificate in PEM"), "{said}");
    assert!(start("good.pem", "good.pem").contains("good.pem holds no private key in PEM"));
    assert!(start("gone.pem", "good.key").contains("gone.pem: No such file"));
    // Right in itself, and not for the host: the client says so.
    let said = start("other.pem", "other.key");
    assert!(said.contains("curl") && said.contains("does not match"), "{said}");
}

#[test]
fn a_full_disk_at_the_server_is_one_sentence() {
    let Some(place) = place() else { return };
    let words = "--clients curl --suites tls1.2-cbc --sizes 300000 --rounds 1 --directions up --module none --dir small";
    fs::create_dir(place.join("small")).unwrap();
    // A file system of 480 KiB: space for what curl sends, not for what the server keeps.
    let script = format!("mount -t tmpfs -o size=480k none small && exec {EVENER} bench tls {words}");
    let ran = place.program("unshare").args(["--map-root-user", "--mount", "sh", "-c", &script]).run();
    if !ran.stderr().starts_with("evener:") && ran.code() != Some(0) {
        return skipped("no namespaces of one's own here (unshare)");
    }
    let said = sentence(&ran);
    assert!(
        said.contains("answered 507") && said.contains("cannot keep an upload of 300000 bytes"),
        "{said}"
    );
    assert!(said.contains("No space left on device"), "{said}");
}
