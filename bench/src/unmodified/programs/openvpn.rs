//! Two ends of OpenVPN in network namespaces of their own; a file goes through the tunnel by HTTP.

use std::process::Command;

use crate::error::BenchError;
use crate::unmodified::place::{Place, Run, Server, read, said};
use crate::unmodified::program::{Asked, Cipher, Program, Work};

pub(super) struct OpenVpn;

const FILE_BYTES: usize = 128 << 20;
/// Namespaces of this process alone.
const ENDS: [&str; 2] = ["a", "b"];

impl Program for OpenVpn {
    fn name(&self) -> &'static str {
        "openvpn"
    }

    fn what(&self) -> &'static str {
        "OpenVPN, AES-256-GCM over UDP between two network namespaces, both ends counted: a file of 128 MiB through the tunnel"
    }

    fn packages(&self) -> &'static [&'static str] {
        &["openvpn", "iproute2", "curl", "python3"]
    }

    fn needs(&self) -> &'static [&'static str] {
        &["openvpn", "ip", "curl", "python3", "/dev/net/tun"]
    }

    fn needs_root(&self) -> bool {
        true
    }

    fn cipher(&self) -> Cipher {
        Cipher { name: "aes-256-gcm", bytes: 1400, is_decrypted: false, volume_bytes: 2 * FILE_BYTES as u64 }
    }

    fn hand(&self) -> &'static [&'static str] {
        &["kernels = on"]
    }

    fn figure(&self) -> Option<Asked> {
        Some(Asked::core(0.95))
    }

    fn prepare(&self, place: &Place) -> Result<Box<dyn Work>, BenchError> {
        place.write("request.cnf", "[req]\ndistinguished_name = name\n[name]\n")?;
        let mut prints = Vec::new();
        for end in ENDS {
            let mut request = place.plain("openssl");
            request.args(
                "req -config request.cnf -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2"
                    .split(' '),
            );
            request.args([
                "-subj",
                &format!("/CN={end}"),
                "-keyout",
                &format!("{end}.key"),
                "-out",
                &format!("{end}.crt"),
            ]);
            said(request)?;
            let mut print = place.plain("openssl");
            print.args(["x509", "-noout", "-fingerprint", "-sha256", "-in", &format!("{end}.crt")]);
            let told = said(print)?;
            prints.push(told.rsplit('=').next().unwrap_or_default().to_owned());
        }
        let file = Place::data(FILE_BYTES);
        place.write("file", &file)?;
        Ok(Box::new(Tunnel { spaces: Spaces::make(place)?, prints, file }))
    }
}

struct Tunnel {
    spaces: Spaces,
    /// Fingerprints of both certificates.
    prints: Vec<String>,
    file: Vec<u8>,
}

/// Two namespaces with a cable between them, gone with this value.
struct Spaces([String; 2]);

impl Spaces {
    fn make(place: &Place) -> Result<Self, BenchError> {
        let names = ENDS.map(|end| format!("evener{}{end}", std::process::id()));
        let ip = |words: String| {
            let mut command = place.plain("ip");
            command.args(words.split(' '));
            said(command).map(drop)
        };
        let spaces = Self(names);
        let [a, b] = &spaces.0;
        ip(format!("netns add {a}"))?;
        ip(format!("netns add {b}"))?;
        ip(format!("-n {a} link add cable type veth peer name cable netns {b}"))?;
        for (space, number) in spaces.0.iter().zip(1..) {
            ip(format!("-n {space} addr add 10.99.0.{number}/24 dev cable"))?;
            ip(format!("-n {space} link set cable up"))?;
            ip(format!("-n {space} link set lo up"))?;
        }
        Ok(spaces)
    }
}

impl Drop for Spaces {
    fn drop(&mut self) {
        for space in &self.0 {
            // One that was never made cannot go.
            _ = Command::new("ip").args(["netns", "del", space]).output();
        }
    }
}

impl Tunnel {
    /// One end, which is up when its log says so.
    fn end(&self, run: &Run<'_>, at: usize) -> Result<Server, BenchError> {
        let (place, own, other) = (run.place(), at + 1, 2 - at);
        let log = place.write(&format!("{}.log", ENDS[at]), "")?;
        let mut command = run.command("ip");
        command.args([
            "netns",
            "exec",
            &self.spaces.0[at],
            "openvpn",
            "--dev",
            "tun",
            "--proto",
            "udp",
            "--port",
            "1194",
        ]);
        command.args([
            "--ifconfig",
            &format!("10.98.0.{own}"),
            &format!("10.98.0.{other}"),
            "--log",
            &log.display().to_string(),
        ]);
        command.args([
            "--remote",
            &format!("10.99.0.{other}"),
            "--cipher",
            "AES-256-GCM",
            "--data-ciphers",
            "AES-256-GCM",
        ]);
        match at {
            0 => command.args(["--tls-server", "--dh", "none"]),
            _ => command.arg("--tls-client"),
        };
        command.args(["--cert", &format!("{}.crt", ENDS[at]), "--key", &format!("{}.key", ENDS[at])]);
        command.args(["--peer-fingerprint", &self.prints[1 - at]]);
        // The first end is up only with the second.
        let is_up = || {
            let told = std::fs::read_to_string(&log).unwrap_or_default();
            at == 0 && told.contains("UDPv4 link") || told.contains("Initialization Sequence Completed")
        };
        let server = Server::start(command, is_up)?;
        run.counts_server(&server);
        Ok(server)
    }

    fn inside(&self, run: &Run<'_>, at: usize, words: &[&str]) -> Command {
        let mut command = run.plain("ip");
        command.args(["netns", "exec", &self.spaces.0[at]]).args(words);
        command
    }
}

impl Work for Tunnel {
    fn once(&mut self, run: &Run<'_>) -> Result<String, BenchError> {
        let _ends = [self.end(run, 0)?, self.end(run, 1)?];
        let address = "http://10.98.0.1:8000/";
        let serve = self.inside(run, 0, &["python3", "-m", "http.server", "--bind", "10.98.0.1", "8000"]);
        let is_up = || said(self.inside(run, 1, &["curl", "-sfI", address])).is_ok();
        let _files = Server::start(serve, is_up)?;
        run.timed(|| {
            run.said(self.inside(run, 1, &["curl", "-sSf", "-o", "got", &format!("{address}file")]))
        })?;
        let is_equal = read(&run.place().path("got"))? == self.file;
        Ok(if is_equal { "the file" } else { "another file" }.to_owned())
    }

    fn truth(&self) -> &str {
        "the file"
    }
}
