//! nginx as a page server: one process with one configuration of OpenSSL, that keeps uploads in files and gives the page from a folder.
//!
//! Steps: the page's files, what is downloaded and the configuration in a folder -> a process -> a port for each suite answers. An upload is read whole
//! into a file before a second server, at a socket in the folder, is asked, which answers for it. Results come in as files ([`Folder::result`]).

use std::collections::BTreeMap;
use std::fs;
use std::net::{IpAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use super::identity::{Identity, file};
use super::last_words::last_words;
use super::site::ASSETS;
use super::suite::Suite;
use crate::error::BenchError;
use crate::programs::port;

/// Where distributions put it; a search path of users has no such folder.
const PLACES: [&str; 2] = ["/usr/sbin/nginx", "/usr/local/sbin/nginx"];
/// Looks at a port, 10 ms apart: half a minute on a quiet machine, and more where processes are stopped.
const LOOKS_MAX: u32 = 3_000;

/// The folder of one nginx.
#[derive(Debug)]
pub(super) struct Folder(PathBuf);

/// nginx, where it is.
pub(super) fn program() -> Option<PathBuf> {
    PLACES.iter().map(PathBuf::from).find(|path| path.is_file())
}

impl Folder {
    /// Makes it, with files of these sizes to be downloaded.
    pub(super) fn make(path: PathBuf, sizes: &[u64]) -> Result<Self, BenchError> {
        let failed = |error: &std::io::Error| file(&path, error);
        for part in ["site", "down", "result"] {
            fs::create_dir_all(path.join(part)).map_err(|error| failed(&error))?;
        }
        for asset in &ASSETS {
            let name = if asset.path == "/" { "index.html" } else { &asset.path[1..] };
            fs::write(path.join("site").join(name), asset.bytes).map_err(|error| failed(&error))?;
        }
        for bytes in sizes {
            let made = fs::File::create(path.join("down").join(bytes.to_string()));
            made.and_then(|file| file.set_len(*bytes)).map_err(|error| failed(&error))?;
        }
        Ok(Self(path))
    }

    /// What the page is to know.
    pub(super) fn set_page(&self, page: &str) -> Result<(), BenchError> {
        let path = self.0.join("site/setup.json");
        fs::write(&path, page).map_err(|error| file(&path, &error))
    }

    /// A result that a page has put here since the last look; nginx gives files their names when they are whole.
    pub(super) fn result(&self) -> Option<serde_json::Value> {
        let entry = fs::read_dir(self.0.join("result")).ok()?.flatten().next()?;
        let text = fs::read(entry.path()).ok()?;
        fs::remove_file(entry.path()).ok()?;
        serde_json::from_slice(&text).ok()
    }

    /// Starts nginx here and waits until it answers.
    pub(super) fn start(
        &self,
        program: &Path,
        listen: IpAddr,
        suites: &[Suite],
        identity: &Identity,
        openssl_conf: &Path,
    ) -> Result<(Child, BTreeMap<String, u16>), BenchError> {
        let mut ports = BTreeMap::new();
        for suite in suites {
            ports.insert(suite.name().to_owned(), free_port(listen)?);
        }
        let configuration = self.0.join("nginx.conf");
        let text = self.configuration(listen, suites, &ports, identity);
        fs::write(&configuration, text).map_err(|error| file(&configuration, &error))?;
        let mut command = Command::new(program);
        command.args(["-e", "stderr", "-p"]).arg(&self.0).arg("-c").arg(&configuration);
        command.env("OPENSSL_CONF", openssl_conf);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let failed = |reason: String| BenchError::Command { command: "nginx".to_owned(), reason };
        let mut child = command.spawn().map_err(|error| failed(error.to_string()))?;
        for port in ports.values() {
            let mut looks = 0..LOOKS_MAX;
            while TcpStream::connect((listen, *port)).is_err() {
                if !matches!(child.try_wait(), Ok(None)) || looks.next().is_none() {
                    child.kill().ok();
                    return Err(failed(last_words(&mut child)));
                }
                std::thread::sleep(Duration::from_millis(10));
            }
        }
        Ok((child, ports))
    }

    fn configuration(
        &self,
        listen: IpAddr,
        suites: &[Suite],
        ports: &BTreeMap<String, u16>,
        identity: &Identity,
    ) -> String {
        let at = self.0.display().to_string();
        let listen = if listen.is_ipv6() { format!("[{listen}]") } else { listen.to_string() };
        let rsa = identity.rsa.as_ref().map_or_else(String::new, |(certificate, key)| {
            format!("ssl_certificate {};\nssl_certificate_key {};\n", certificate.display(), key.display())
        });
        let servers = suites.iter().map(|suite| {
            let version = if *suite == Suite::Tls13 { "TLSv1.3" } else { "TLSv1.2" };
            let ciphers = match suite {
                Suite::Tls13 => format!("ssl_conf_command Ciphersuites {}", suite.ciphers()),
                _ => format!("ssl_ciphers {}", suite.ciphers()),
            };
            SERVER
                .replace("{address}", &format!("{listen}:{}", ports[suite.name()]))
                .replace("{certificate}", &identity.certificate.display().to_string())
                .replace("{key}", &identity.key.display().to_string())
                .replace("{rsa}", &rsa)
                .replace("{version}", version)
                .replace("{ciphers}", &ciphers)
        });
        HTTP.replace("{servers}", &servers.collect::<String>()).replace("{folder}", &at)
    }
}

fn free_port(listen: IpAddr) -> Result<u16, BenchError> {
    port::free(listen).map_err(|error| {
        BenchError::Cell(format!("cannot listen at {listen}: {error}; name another address by --listen"))
    })
}

/// A server that root starts would give its files to another user, who may not enter it: hence one process.
const HTTP: &str = "\
pid {folder}/pid;
error_log stderr error;
daemon off;
master_process off;
events { worker_connections 256; }
http {
    access_log off;
    default_type application/octet-stream;
    types { text/html html; text/javascript js; text/css css; application/json json; }
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    client_max_body_size 0;
    keepalive_timeout 0;
    ssl_session_cache off;
    ssl_session_tickets off;
    upstream answers { server unix:{folder}/answers; }
    server {
        listen unix:{folder}/answers;
        location = /up { default_type application/json; return 200 '{}'; }
        location = /form.html { root {folder}/site; }
    }
{servers}}
";

/// One suite. Headers are added here, for what the second server answers goes through: twice, no browser takes them.
const SERVER: &str = "\
    server {
        listen {address} ssl;
        ssl_certificate {certificate};
        ssl_certificate_key {key};
        {rsa}
        ssl_protocols {version};
        {ciphers};
        ssl_prefer_server_ciphers on;
        root {folder}/site;
        add_header Access-Control-Allow-Origin * always;
        add_header Timing-Allow-Origin * always;
        add_header Cache-Control no-store always;
        location = /up { client_body_in_file_only clean; proxy_method GET; proxy_pass_request_body off; proxy_set_header Content-Length ''; proxy_pass http://answers; }
        location = /form.html { client_body_in_file_only clean; proxy_method GET; proxy_pass_request_body off; proxy_set_header Content-Length ''; proxy_pass http://answers; }
        location = /down { root {folder}; try_files /down/$arg_bytes =404; }
        location /result/ { root {folder}; dav_methods PUT; }
    }
";
