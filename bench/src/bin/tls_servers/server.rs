//! Web servers on loopback, two workers each, TLS 1.3 with AES-128-GCM.

use std::fmt;
use std::fs;
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::str::FromStr;
use std::time::{Duration, Instant};

use evener_bench::openssl_conf::Providers;
use rustix::process::{Pid, Signal, kill_process_group};
use tempfile::TempDir;

/// The server programs that are known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Nginx,
    ApachePrefork,
    ApacheEvent,
}

impl Kind {
    pub(crate) const ALL: [Self; 3] = [Self::Nginx, Self::ApachePrefork, Self::ApacheEvent];

    const fn name(self) -> &'static str {
        match self {
            Self::Nginx => "nginx",
            Self::ApachePrefork => "apache-prefork",
            Self::ApacheEvent => "apache-event",
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
    pub(crate) fn new(objects: &[(&str, usize)], module: &Path) -> Result<Self, String> {
        let folder = TempDir::with_prefix("evener-servers-").map_err(|error| error.to_string())?;
        let site = Self { folder };
        // Servers that are started by root read as somebody else.
        let readable = fs::Permissions::from_mode(0o755);
        fs::set_permissions(site.folder.path(), readable).map_err(|error| error.to_string())?;
        for &(name, bytes) in objects {
            site.write(name, &"x".repeat(bytes))?;
        }
        for providers in Providers::BOTH {
            site.write(&format!("{}.cnf", providers.name()), &providers.configuration(module))?;
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
    port: u16,
}

impl Server {
    /// Starts a server and waits until it answers.
    pub(crate) fn start(kind: Kind, site: &Site, providers: Providers) -> Result<Self, String> {
        let port = free_port()?;
        let name = providers.name();
        let folder = site.path(&format!("{name}-run"));
        fs::create_dir_all(&folder).map_err(|error| error.to_string())?;
        let template = match kind {
            Kind::Nginx => NGINX,
            Kind::ApachePrefork | Kind::ApacheEvent => APACHE,
        };
        let text = template
            .replace("ROOT", &site.folder.path().display().to_string())
            .replace("RUN", &folder.display().to_string())
            .replace("MPM", if kind == Kind::ApacheEvent { "event" } else { "prefork" })
            .replace("PORT", &port.to_string());
        let configuration = site.write(&format!("{name}-server.conf"), &text)?;
        let mut command = match kind {
            Kind::Nginx => Command::new("/usr/sbin/nginx"),
            Kind::ApachePrefork | Kind::ApacheEvent => Command::new("/usr/sbin/apache2"),
        };
        match kind {
            Kind::Nginx => command.arg("-c").arg(configuration),
            Kind::ApachePrefork | Kind::ApacheEvent => {
                command.arg("-DFOREGROUND").arg("-f").arg(configuration)
            }
        };
        command.env("OPENSSL_CONF", site.path(&format!("{name}.cnf"))).stdin(Stdio::null()).process_group(0);
        let child = command.spawn().map_err(|error| format!("{kind}: {error}"))?;
        let mut server = Self { child, port };
        server.wait_until_up(kind)?;
        server.assert_provider(providers)?;
        Ok(server)
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
        let until = Instant::now() + Duration::from_secs(10);
        while TcpStream::connect(("127.0.0.1", self.port)).is_err() {
            if let Ok(Some(status)) = self.child.try_wait() {
                return Err(format!("{kind} ended: {status}"));
            }
            if Instant::now() > until {
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
        pids.filter(|&pid| group_of(pid) == Some(group)).collect()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Some(group) = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw) {
            // Best effort: where it is gone already there is nothing to end.
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
    let listener = TcpListener::bind("127.0.0.1:0").map_err(|error| error.to_string())?;
    Ok(listener.local_addr().map_err(|error| error.to_string())?.port())
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
StartServers 2
MaxKeepAliveRequests 0
KeepAlive On
KeepAliveTimeout 60
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
