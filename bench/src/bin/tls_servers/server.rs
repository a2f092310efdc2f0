//! Web servers on loopback, two workers each, TLS 1.3 with AES-128-GCM.

use std::fmt;
use std::fs;
use std::net::{IpAddr, Ipv4Addr, TcpStream};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::str::FromStr;
use std::time::Duration;

use evener_bench::programs::counters::{Counter, Tool};
use evener_bench::programs::openssl_conf::Providers;
use evener_bench::programs::port;
use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use tempfile::TempDir;

evener_core::named! {
    /// The server programs that are known.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub(crate) enum Kind {
        Nginx = "nginx",
        ApachePrefork = "apache-prefork",
        ApacheEvent = "apache-event",
    }
}

impl Kind {
    fn words(self, configuration: &str) -> Vec<&str> {
        match self {
            Self::Nginx => vec!["/usr/sbin/nginx", "-c", configuration],
            Self::ApachePrefork | Self::ApacheEvent => {
                vec!["/usr/sbin/apache2", "-DFOREGROUND", "-f", configuration]
            }
        }
    }

    /// ROOT, RUN and PORT are left to fill in.
    fn template(self) -> String {
        match self {
            Self::Nginx => NGINX.to_owned(),
            Self::ApachePrefork => APACHE.replace("MPM", "prefork").replace("CHILDREN", PREFORK),
            Self::ApacheEvent => APACHE.replace("MPM", "event").replace("CHILDREN", EVENT),
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Kind {
    type Err = String;

    fn from_str(word: &str) -> Result<Self, String> {
        let kind = Self::ALL.into_iter().find(|kind| kind.name() == word);
        kind.ok_or_else(|| format!("{word} is none of nginx, apache-prefork, apache-event"))
    }
}

/// What servers serve, and how OpenSSL is configured for them; removed when dropped.
pub(crate) struct Site {
    folder: TempDir,
}

impl Site {
    /// `settings` are lines for the module's section of `openssl.cnf`.
    pub(crate) fn new(objects: &[(&str, usize)], module: &Path, settings: &[String]) -> Result<Self, String> {
        let folder = TempDir::with_prefix("evener-servers-").map_err(|error| error.to_string())?;
        let site = Self { folder };
        // Servers that are started by root read as another user.
        let readable = fs::Permissions::from_mode(0o755);
        fs::set_permissions(site.folder.path(), readable).map_err(|error| error.to_string())?;
        for &(name, bytes) in objects {
            site.write(name, &"x".repeat(bytes))?;
        }
        for providers in Providers::BOTH {
            site.write(&format!("{}.cnf", providers.name()), &providers.configuration(module, settings))?;
        }
        site.certificate()?;
        Ok(site)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn write(&self, name: &str, text: &str) -> Result<PathBuf, String> {
        let path = self.path(name);
        fs::write(&path, text).map_err(|error| format!("{}: {error}", path.display()))?;
        Ok(path)
    }

    fn certificate(&self) -> Result<(), String> {
        let mut openssl = Command::new("openssl");
        openssl.args(["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]);
        openssl.args(["-days", "2", "-subj", "/CN=localhost", "-keyout"]).arg(self.path("key.pem"));
        openssl.arg("-out").arg(self.path("cert.pem"));
        let output = openssl.output().map_err(|error| format!("openssl: {error}"))?;
        output
            .status
            .success()
            .then_some(())
            .ok_or_else(|| String::from_utf8_lossy(&output.stderr).into_owned())
    }
}

/// A running server; ended with all its processes when dropped.
pub(crate) struct Server {
    child: Child,
    /// The child is the one that watches, and its children are the server.
    is_watched: bool,
    port: u16,
}

impl Server {
    /// Starts a server, behind a counter if there is one, and waits until it answers.
    pub(crate) fn start(
        kind: Kind,
        site: &Site,
        providers: Providers,
        counter: Option<&Counter>,
    ) -> Result<Self, String> {
        let port = free_port()?;
        let name = providers.name();
        let folder = site.path(&format!("{name}-run"));
        fs::create_dir_all(&folder).map_err(|error| error.to_string())?;
        let text = (kind.template())
            .replace("ROOT", &site.folder.path().display().to_string())
            .replace("RUN", &folder.display().to_string())
            .replace("PORT", &port.to_string());
        let configuration = site.write(&format!("{name}-server.conf"), &text)?.display().to_string();
        let mut words = counter.map(Counter::words).unwrap_or_default();
        words.extend(kind.words(&configuration).into_iter().map(str::to_owned));
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]).env("OPENSSL_CONF", site.path(&format!("{name}.cnf")));
        let child = command.stdin(Stdio::null()).process_group(0).spawn();
        let child = child.map_err(|error| format!("{kind}: {}: {error}", words[0]))?;
        let is_watched = counter.is_some_and(|counter| counter.tool() == Tool::SystemCalls);
        let mut server = Self { child, is_watched, port };
        server.wait_until_up(kind)?;
        server.assert_provider(providers)?;
        Ok(server)
    }

    /// Ends it; the processes that it had, the one that started the others first.
    pub(crate) fn end(self) -> Vec<u32> {
        let (first, mut processes) = (self.child.id(), self.processes());
        processes.sort_unstable_by_key(|&process| (process != first, process));
        processes
    }

    pub(crate) fn url(&self, object: &str) -> String {
        format!("https://127.0.0.1:{}/{object}", self.port)
    }

    /// Core time of all its threads so far, in nanoseconds, as the scheduler counts it (`/proc/PID/task/TID/schedstat`).
    pub(crate) fn core_ns(&self) -> Result<u64, String> {
        let mut sum = 0;
        for pid in self.processes() {
            let Ok(tasks) = fs::read_dir(format!("/proc/{pid}/task")) else { continue };
            for task in tasks.flatten() {
                let text = fs::read_to_string(task.path().join("schedstat")).unwrap_or_default();
                let ns: Option<u64> = text.split_whitespace().next().and_then(|word| word.parse().ok());
                sum += ns.ok_or("the kernel keeps no schedstat")?;
            }
        }
        Ok(sum)
    }

    fn wait_until_up(&mut self, kind: Kind) -> Result<(), String> {
        // Looks, not time: a process that is stopped together with the server has not waited for it.
        let mut looks = 0..3000;
        while TcpStream::connect(("127.0.0.1", self.port)).is_err() {
            if let Ok(Some(status)) = self.child.try_wait() {
                return Err(format!("{kind} ended: {status}"));
            }
            if looks.next().is_none() {
                return Err(format!("{kind} does not answer"));
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(())
    }

    /// A server that silently runs without the module would be measured against itself.
    fn assert_provider(&self, providers: Providers) -> Result<(), String> {
        for pid in self.processes() {
            let maps = fs::read_to_string(format!("/proc/{pid}/maps")).map_err(|error| error.to_string())?;
            if maps.contains("/evener.so") != (providers == Providers::Evener) {
                return Err(format!("process {pid} of the server has the wrong providers"));
            }
        }
        Ok(())
    }

    /// The server and its children, which stay in its process group.
    fn processes(&self) -> Vec<u32> {
        let group = self.child.id();
        let pids = fs::read_dir("/proc").into_iter().flatten().flatten();
        let pids = pids.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        let is_server = |pid: u32| group_of(pid) == Some(group) && !(self.is_watched && pid == group);
        pids.filter(|&pid| is_server(pid)).collect()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Best effort: where it is gone already there is nothing to end. A process that watches ends with the last process.
        let known = |pid: u32| i32::try_from(pid).ok().and_then(Pid::from_raw);
        if self.is_watched {
            for pid in self.processes().into_iter().filter_map(known) {
                kill_process(pid, Signal::TERM).ok();
            }
        } else if let Some(group) = known(self.child.id()) {
            kill_process_group(group, Signal::TERM).ok();
        }
        self.child.wait().ok();
    }
}

/// The fifth field of `/proc/PID/stat`; the second, a name in parentheses, may hold anything.
fn group_of(pid: u32) -> Option<u32> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    text.rsplit_once(')')?.1.split_whitespace().nth(2)?.parse().ok()
}

fn free_port() -> Result<u16, String> {
    port::free(IpAddr::V4(Ipv4Addr::LOCALHOST)).map_err(|error| error.to_string())
}

const NGINX: &str = "\
worker_processes 2;
daemon off;
pid RUN/pid;
error_log stderr crit;
events { worker_connections 256; }
http {
    access_log off;
    client_body_temp_path RUN/body;
    proxy_temp_path RUN/proxy;
    fastcgi_temp_path RUN/fastcgi;
    uwsgi_temp_path RUN/uwsgi;
    scgi_temp_path RUN/scgi;
    server {
        listen 127.0.0.1:PORT ssl;
        ssl_certificate ROOT/cert.pem;
        ssl_certificate_key ROOT/key.pem;
        ssl_protocols TLSv1.3;
        ssl_conf_command Ciphersuites TLS_AES_128_GCM_SHA256;
        keepalive_requests 10000000;
        # A process that is stopped meanwhile has not left.
        keepalive_timeout 1h;
        client_header_timeout 1h;
        root ROOT;
    }
}
";

const APACHE: &str = "\
ServerName localhost
ServerRoot RUN
PidFile RUN/pid
DefaultRuntimeDir RUN
ErrorLog RUN/errors
LogLevel emerg
LoadModule mpm_MPM_module /usr/lib/apache2/modules/mod_mpm_MPM.so
LoadModule authz_core_module /usr/lib/apache2/modules/mod_authz_core.so
LoadModule socache_shmcb_module /usr/lib/apache2/modules/mod_socache_shmcb.so
LoadModule ssl_module /usr/lib/apache2/modules/mod_ssl.so
User www-data
Group www-data
Listen 127.0.0.1:PORT
CHILDREN
MaxKeepAliveRequests 0
KeepAlive On
# A process that is stopped meanwhile has not left.
KeepAliveTimeout 3600
Timeout 3600
SSLEngine on
SSLProtocol TLSv1.3
SSLCipherSuite TLSv1.3 TLS_AES_128_GCM_SHA256
SSLCertificateFile ROOT/cert.pem
SSLCertificateKeyFile ROOT/key.pem
DocumentRoot ROOT
<Directory ROOT>
    Require all granted
</Directory>
";

/// A process for each of the load's connections, no more and no fewer.
const PREFORK: &str = "\
StartServers 8
MinSpareServers 1
MaxSpareServers 8
MaxRequestWorkers 8";

/// Two workers of 25 threads, no more and no fewer.
const EVENT: &str = "\
StartServers 2
MinSpareThreads 25
MaxRequestWorkers 50";
