//! Web servers: large downloads over TLS 1.3 with AES-256-GCM by curl, whose core time is not counted.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{IpAddr, Ipv4Addr, TcpListener, TcpStream};
use std::process::Command;
use std::sync::Arc;
use std::thread;

use crate::error::BenchError;
use crate::tls::Identity;
use crate::unmodified::place::{Place, Run, free_port, read};
use crate::unmodified::program::{Asked, Cipher, Program, Work};

/// A server.
pub(super) struct Server {
    name: &'static str,
    what: &'static str,
    packages: &'static [&'static str],
    needs: &'static [&'static str],
    /// Where it has the file from is left to the function; the port is the server's.
    words: fn(&Site, u16) -> Result<Vec<String>, BenchError>,
}

pub(super) const NGINX: Server = Server {
    name: "nginx",
    what: "nginx, one worker, curl downloads a file of 64 MiB 16 times, TLS 1.3 with AES-256-GCM",
    packages: &["nginx-light", "curl"],
    needs: &["/usr/sbin/nginx", "curl"],
    words: nginx,
};

pub(super) const HAPROXY: Server = Server {
    name: "haproxy",
    what: "haproxy, one thread, curl downloads a file of 64 MiB 16 times from a server behind it, TLS 1.3 with AES-256-GCM",
    packages: &["haproxy", "curl"],
    needs: &["/usr/sbin/haproxy", "curl"],
    words: haproxy,
};

const DOWNLOADS: u32 = 16;
const FILE_BYTES: usize = 64 << 20;

impl Program for Server {
    fn name(&self) -> &'static str {
        self.name
    }

    fn what(&self) -> &'static str {
        self.what
    }

    fn packages(&self) -> &'static [&'static str] {
        self.packages
    }

    fn needs(&self) -> &'static [&'static str] {
        self.needs
    }

    fn cipher(&self) -> Cipher {
        let volume_bytes = u64::from(DOWNLOADS) * FILE_BYTES as u64;
        Cipher { name: "aes-256-gcm", bytes: 16 << 10, is_decrypted: false, volume_bytes }
    }

    fn hand(&self) -> &'static [&'static str] {
        &["kernels = on"]
    }

    fn figure(&self) -> Option<Asked> {
        Some(Asked::core(0.93))
    }

    fn prepare(&self, place: &Place) -> Result<Box<dyn Work>, BenchError> {
        let identity = Identity::make(&place.path(""), &[IpAddr::V4(Ipv4Addr::LOCALHOST)])?;
        let both = [read(&identity.certificate)?, read(&identity.key)?].concat();
        let file = Arc::new(Place::data(FILE_BYTES));
        place.write("file", file.as_slice())?;
        place.write("both.pem", both)?;
        let site = Site { folder: place.path("").display().to_string(), back_end: back_end(&file)? };
        Ok(Box::new(Downloads { site, file, words: self.words, truth: format!("{DOWNLOADS} equal files") }))
    }
}

/// What configurations name.
struct Site {
    folder: String,
    /// A server without TLS that has the file.
    back_end: u16,
}

struct Downloads {
    site: Site,
    file: Arc<Vec<u8>>,
    words: fn(&Site, u16) -> Result<Vec<String>, BenchError>,
    truth: String,
}

impl Work for Downloads {
    fn once(&mut self, run: &Run<'_>) -> Result<String, BenchError> {
        let port = free_port()?;
        let words = (self.words)(&self.site, port)?;
        let mut command = run.command(&words[0]);
        command.args(&words[1..]);
        let _server = run.serve(command, port)?;
        let mut curl: Command = run.plain("curl");
        curl.args("-sSf --insecure --tlsv1.3 --tls13-ciphers TLS_AES_256_GCM_SHA384 -o got.#1".split(' '));
        curl.arg(format!("https://127.0.0.1:{port}/file?[1-{DOWNLOADS}]"));
        run.timed(|| run.said(curl))?;
        let mut equal = 0;
        for number in 1..=DOWNLOADS {
            let got = run.place().path(&format!("got.{number}"));
            equal += u32::from(read(&got)? == *self.file);
            run.place().write(&format!("got.{number}"), "")?;
        }
        Ok(format!("{equal} equal files"))
    }

    fn truth(&self) -> &str {
        &self.truth
    }
}

fn write(path: String, text: &str) -> Result<String, BenchError> {
    let failed = |error: std::io::Error| BenchError::File { path: path.clone(), error: error.to_string() };
    std::fs::write(&path, text).map_err(failed)?;
    Ok(path)
}

/// Writes nginx's configuration, and gives its words.
fn nginx(site: &Site, port: u16) -> Result<Vec<String>, BenchError> {
    let text =
        NGINX_TEXT.replace("FOLDER", site.folder.trim_end_matches('/')).replace("PORT", &port.to_string());
    let path = write(format!("{}nginx.conf", site.folder), &text)?;
    Ok(["/usr/sbin/nginx", "-e", "stderr", "-p", &site.folder, "-c", &path].map(str::to_owned).to_vec())
}

/// Writes haproxy's configuration, and gives its words.
fn haproxy(site: &Site, port: u16) -> Result<Vec<String>, BenchError> {
    let text = HAPROXY_TEXT
        .replace("FOLDER", site.folder.trim_end_matches('/'))
        .replace("BACK", &site.back_end.to_string());
    let path = write(format!("{}haproxy.cfg", site.folder), &text.replace("PORT", &port.to_string()))?;
    Ok(["/usr/sbin/haproxy", "-db", "-f", &path].map(str::to_owned).to_vec())
}

/// Serves the file to each client, for as long as this process lives.
fn back_end(file: &Arc<Vec<u8>>) -> Result<u16, BenchError> {
    let failed = |error: std::io::Error| BenchError::Cell(format!("no port is free: {error}"));
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).map_err(failed)?;
    let port = listener.local_addr().map_err(failed)?.port();
    let file = Arc::clone(file);
    thread::spawn(move || {
        for client in listener.incoming().flatten() {
            let file = Arc::clone(&file);
            thread::spawn(move || answer(client, &file));
        }
    });
    Ok(port)
}

/// Up to the empty line; a client that has gone is none of this measurement's.
fn answer(mut client: TcpStream, file: &[u8]) {
    let Ok(reader) = client.try_clone() else { return };
    let lines = BufReader::new(reader).lines();
    _ = lines.map_while(Result::ok).take_while(|line| !line.is_empty()).count();
    let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\nConnection: close\r\n\r\n", file.len());
    _ = client.write_all(head.as_bytes()).and_then(|()| client.write_all(file));
}

const NGINX_TEXT: &str = "\
user root;
worker_processes 1;
daemon off;
pid FOLDER/pid;
error_log FOLDER/error.log;
events {}
http {
access_log off;
client_body_temp_path FOLDER/body;
proxy_temp_path FOLDER/proxy;
fastcgi_temp_path FOLDER/fastcgi;
uwsgi_temp_path FOLDER/uwsgi;
scgi_temp_path FOLDER/scgi;
server {
listen 127.0.0.1:PORT ssl;
root FOLDER;
ssl_certificate FOLDER/both.pem;
ssl_certificate_key FOLDER/both.pem;
ssl_protocols TLSv1.3;
}
}
";

const HAPROXY_TEXT: &str = "\
global
nbthread 1
maxconn 100
defaults
mode http
timeout connect 10s
timeout client 60s
timeout server 60s
frontend in
bind 127.0.0.1:PORT ssl crt FOLDER/both.pem ssl-min-ver TLSv1.3
default_backend out
backend out
server one 127.0.0.1:BACK
";
