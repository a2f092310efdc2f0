//! `curl`, the control: each file by a process of its own, in the turns of the page.

use std::process::Command;

use serde::Deserialize;

use super::{Client, Found, Visit, answer};
use crate::error::BenchError;
use crate::programs::openssl_conf::Providers;
use crate::programs::stopwatch;
use crate::tls::Direction;
use crate::tls::identity::file;
use crate::tls::page::{Asked, Measurement, PAGE_SCHEMA, Page, PageClient, Phases, Seen, Transfer};
use crate::tls::servers::{Event, Servers};
use crate::tls::suite::Suite;

/// What `--write-out '%{json}'` says, in seconds from its start; times that it has not are zero.
#[derive(Deserialize)]
struct Written {
    time_connect: f64,
    time_appconnect: f64,
    time_pretransfer: f64,
    time_starttransfer: f64,
    time_total: f64,
    response_code: u16,
}

pub(super) fn version() -> Found {
    let mut command = Command::new("curl");
    command.arg("--version");
    let text = answer(command).ok_or("curl is not installed")?;
    let mut words = text.lines().next().unwrap_or_default().split_whitespace();
    let version = words.by_ref().take(2).collect::<Vec<_>>().join(" ");
    let libraries = ["OpenSSL/", "GnuTLS/", "LibreSSL/", "wolfSSL/", "BoringSSL", "rustls"];
    let library = words.find(|word| libraries.iter().any(|name| word.starts_with(name)));
    let library = library.ok_or("curl has no TLS library that is known")?;
    Ok((version, format!("{}, a shared library", library.replace('/', " "))))
}

pub(super) fn visit(visit: &Visit<'_>, servers: &mut Servers) -> Result<Page, BenchError> {
    let transfers = &visit.plan.transfers;
    let ends: Vec<Providers> = servers.providers().collect();
    let mut measurements = Vec::new();
    for round in 0..=visit.rounds {
        for (place, &bytes) in transfers.sizes.iter().enumerate() {
            for &direction in &transfers.directions {
                for turn in 0..ends.len() {
                    let end = ends[(visit.rounds_before + round + turn) % ends.len()];
                    // The round before the first warms up, with the smallest size. A form is a browser's.
                    if direction == Direction::Form || (round == 0 && place > 0) {
                        continue;
                    }
                    if visit.cancel.is_cancelled() {
                        return Err(BenchError::Stopped);
                    }
                    let id = format!("{}.{}", visit.session, measurements.len());
                    let transfer = Transfer { id, round, direction, bytes, end: end.name().to_owned() };
                    let one = exchange(visit, servers, end, transfer)?;
                    if round > 0 {
                        measurements.push(one);
                    }
                }
            }
        }
    }
    for &end in ends.iter().filter(|_| servers.tells()) {
        join(visit, servers, end, &mut measurements)?;
    }
    Ok(Page {
        schema: PAGE_SCHEMA.to_owned(),
        client: PageClient {
            session: visit.session.clone(),
            agent: "curl".to_owned(),
            label: Some(visit.label(Client::Curl)),
        },
        asked: Asked { suite: visit.suite, rounds: visit.rounds, sizes: transfers.sizes.clone() },
        measured_in_ms: None,
        measurements,
    })
}

/// A command that speaks this suite, takes the servers' certificate and says nothing but what is asked.
fn curl(visit: &Visit<'_>, servers: &Servers) -> Result<Command, BenchError> {
    let mut command = Command::new("curl");
    command
        .args(["-q", "-sS", "--noproxy", "*", "--http1.1", "--cacert"])
        .arg(&servers.identity().certificate);
    match visit.suite {
        Suite::Tls13 => command.args(["--tlsv1.3", "--tls13-ciphers", visit.suite.ciphers()]),
        suite => command.args(["--tls-max", "1.2", "--ciphers", suite.ciphers()]),
    };
    command.env("OPENSSL_CONF", servers.configuration(visit.plan, visit.providers)?);
    Ok(command)
}

fn exchange(
    visit: &Visit<'_>,
    servers: &mut Servers,
    end: Providers,
    transfer: Transfer,
) -> Result<Measurement, BenchError> {
    let Transfer { id, direction, bytes, .. } = &transfer;
    let (direction, bytes) = (*direction, *bytes);
    let url = servers.url(visit.suite, end);
    let got = servers.folder().join("got");
    let mut command = curl(visit, servers)?;
    command.args(["--write-out", "%{stderr}%{json}", "-o"]).arg(&got);
    if direction == Direction::Up {
        let sent = servers.folder().join(format!("{bytes}"));
        if !sent.exists() {
            let whole = vec![0x42; usize::try_from(bytes).unwrap_or(usize::MAX)];
            std::fs::write(&sent, whole).map_err(|error| file(&sent, &error))?;
        }
        command.args(["-H", "Expect:", "-X", "POST", "-T"]).arg(sent).arg(format!("{url}/up?id={id}"));
    } else {
        command.arg(format!("{url}/down?bytes={bytes}&id={id}"));
    }
    let (written, core) = stopwatch::with_core(|| command.stdin(std::process::Stdio::null()).output());
    let failed = |reason: String| BenchError::Command { command: "curl".to_owned(), reason };
    let output = written.map_err(|error| failed(error.to_string()))?;
    let said = String::from_utf8_lossy(&output.stderr);
    let (words, json) = said.split_at(said.find('{').unwrap_or(said.len()));
    let written: Result<Written, _> = serde_json::from_str(json);
    match written {
        Ok(written) if output.status.success() && written.response_code == 200 => {
            if direction == Direction::Down && std::fs::metadata(&got).map_or(0, |it| it.len()) != bytes {
                return Err(failed(format!("{url} gave another length than {bytes} bytes")));
            }
            Ok(measurement(transfer, &written, core.as_secs_f64() * 1e3))
        }
        Ok(written) if output.status.success() => {
            let answer = std::fs::read_to_string(&got).unwrap_or_default();
            Err(failed(format!("{url} answered {}: {}", written.response_code, answer.trim())))
        }
        _ => Err(failed(why(words, servers))),
    }
}

/// What curl said, or how the server that it asked ended.
fn why(words: &str, servers: &mut Servers) -> String {
    let mut fault = None;
    while let Some((providers, event)) = servers.next(std::time::Duration::from_millis(200)) {
        match event {
            Event::Gone => {
                let how = servers.end_of(providers);
                return format!("the page server {} ended while it measured ({how})", providers.in_words());
            }
            Event::Said(crate::tls::server::Said::Fault(sentence)) => fault = Some(sentence),
            Event::Said(_) => {}
        }
    }
    let first =
        words.lines().find(|line| !line.trim().is_empty()).unwrap_or("it failed without a word").trim();
    match fault {
        Some(sentence) => format!("{first}; the server said: {sentence}"),
        None => first.to_owned(),
    }
}

fn measurement(transfer: Transfer, written: &Written, core_ms: f64) -> Measurement {
    let ms = |from: f64, to: f64| (to - from) * 1e3;
    let phases = Phases {
        connect_ms: ms(0.0, written.time_connect),
        tls_ms: Some(ms(written.time_connect, written.time_appconnect)),
        request_ms: ms(written.time_pretransfer, written.time_starttransfer),
        response_ms: ms(written.time_starttransfer, written.time_total),
    };
    Measurement {
        ms: written.time_total * 1e3,
        client_core_ms: Some(core_ms),
        // Of an upload curl does not say when the answer began: the server does.
        phases: (transfer.direction == Direction::Down).then_some(phases),
        transfer,
        navigation: None,
        server: None,
    }
}

/// Joins what the server saw.
fn join(
    visit: &Visit<'_>,
    servers: &Servers,
    end: Providers,
    measurements: &mut [Measurement],
) -> Result<(), BenchError> {
    let mut command = curl(visit, servers)?;
    command.arg(format!("{}/spent?session={}", servers.url(visit.suite, end), visit.session));
    let text = stopwatch::run(command)?;
    let seen: std::collections::HashMap<String, Seen> = serde_json::from_slice(&text).unwrap_or_default();
    for one in measurements.iter_mut().filter(|one| one.transfer.end == end.name()) {
        one.server = seen.get(&one.transfer.id).cloned();
    }
    Ok(())
}
