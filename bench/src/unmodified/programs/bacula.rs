//! bacula-fd, 16 jobs at once with encrypted data; director and storage daemon are not counted.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use crate::error::BenchError;
use crate::unmodified::configuration::Configuration;
use crate::unmodified::place::{Place, Run, failed, free_port, read, said};
use crate::unmodified::program::{Asked, Cipher, Program, Work};

pub(super) struct Bacula;

const JOBS: usize = 16;
/// Backups that are restored after a run, others after the next of the same configuration: one takes a second, as long as four take to be made.
const RESTORED: usize = 4;
const FILE_BYTES: usize = 32 << 20;
/// What the package gives sqlite3 when it makes a catalog.
const TABLES: &str = "/usr/share/dbconfig-common/data/bacula-director-sqlite3/install/sqlite3";

impl Program for Bacula {
    fn name(&self) -> &'static str {
        "bacula"
    }

    fn what(&self) -> &'static str {
        "bacula-fd alone counted, 16 jobs at once back up 32 MiB each, PKI encryption with AES-256-CBC, all in memory"
    }

    fn packages(&self) -> &'static [&'static str] {
        &["bacula-fd", "bacula-sd", "bacula-director", "bacula-director-sqlite3", "bacula-console", "sqlite3"]
    }

    fn needs(&self) -> &'static [&'static str] {
        &["bacula-fd", "bacula-sd", "bacula-dir", "bconsole", "sqlite3", TABLES]
    }

    fn cipher(&self) -> Cipher {
        let volume_bytes = (JOBS * FILE_BYTES) as u64;
        Cipher { name: "aes-256-cbc", bytes: 64 << 10, is_decrypted: false, volume_bytes }
    }

    fn hand(&self) -> &'static [&'static str] {
        &["combine = auto"]
    }

    fn figure(&self) -> Option<Asked> {
        Some(Asked::core(0.75))
    }

    fn prepare(&self, place: &Place) -> Result<Box<dyn Work>, BenchError> {
        let mut request = place.plain("openssl");
        // A configuration of a measurement has no section for requests; bacula finds a key by its certificate's identifier.
        let request_text = "[req]\ndistinguished_name = name\nx509_extensions = extensions\n[name]\n[extensions]\nsubjectKeyIdentifier = hash\n";
        place.write("request.cnf", request_text)?;
        request.args("req -config request.cnf -x509 -newkey rsa:2048 -nodes -keyout key -out certificate -days 2 -subj /CN=fd".split(' '));
        said(request)?;
        let pair = ["key", "certificate"].map(|name| read(&place.path(name)));
        let [key, certificate] = pair;
        place.write("pair.pem", [key?, certificate?].concat())?;
        let text = Place::data(JOBS * FILE_BYTES);
        for (number, part) in text.chunks(FILE_BYTES).enumerate() {
            place.write(&format!("data{number}"), part)?;
        }
        let ports = [free_port()?, free_port()?, free_port()?];
        write_configurations(place, ports)?;
        Ok(Box::new(Backup {
            text,
            ports,
            restored: BTreeMap::new(),
            truth: format!("{RESTORED} equal files"),
        }))
    }
}

struct Backup {
    text: Vec<u8>,
    /// Of the director, the file daemon, the storage daemon.
    ports: [u16; 3],
    /// Which of the backups' parts is restored next.
    restored: BTreeMap<Configuration, usize>,
    truth: String,
}

impl Work for Backup {
    fn once(&mut self, run: &Run<'_>) -> Result<String, BenchError> {
        let place = run.place();
        for name in ["state", "store", "restored"] {
            let path = place.path(name);
            // There is none before the first run.
            fs::remove_dir_all(&path).unwrap_or_default();
            fs::create_dir(&path).map_err(failed(&path))?;
        }
        let mut catalog = place.plain("sh");
        catalog.args(["-c", &format!("sqlite3 state/bacula.db < {TABLES}")]);
        said(catalog)?;
        let daemon = |mut command: Command, name: &str| {
            command.args(["-f", "-c"]).arg(place.path(&format!("{name}.conf")));
            command
        };
        let _director = run.serve(daemon(place.plain("bacula-dir"), "dir"), self.ports[0])?;
        let _storage = run.serve(daemon(place.plain("bacula-sd"), "sd"), self.ports[2])?;
        let file_daemon = run.serve(daemon(run.command("bacula-fd"), "fd"), self.ports[1])?;
        let jobs: String = (0..JOBS).map(|number| format!("run job=B{number} yes\n")).collect();
        run.timed(|| console(run, &format!("{jobs}wait\nquit\n")))?;
        drop(file_daemon);
        let _reader = run.serve(daemon(place.plain("bacula-fd"), "fd"), self.ports[1])?;
        let restored = place.path("restored");
        let part = self.restored.entry(run.configuration()).or_default();
        let numbers = *part * RESTORED..(*part + 1) * RESTORED;
        *part = (*part + 1) % (JOBS / RESTORED);
        // One for each job, whose identifiers are numbered from 1 on as they were asked for: a restore of several reads their sessions as they lie on the volume, mixed.
        let restore = |number: usize| {
            format!("restore jobid={} where={} all done yes\n", number + 1, restored.display())
        };
        console(run, &format!("{}wait\nquit\n", numbers.clone().map(restore).collect::<String>()))?;
        let parts = self.text.chunks(FILE_BYTES).enumerate();
        let equal = parts.filter(|(number, _)| numbers.contains(number)).filter(|(number, part)| {
            let path = place.path(&format!("data{number}"));
            let path = restored.join(path.strip_prefix("/").unwrap_or(&path));
            fs::read(path).is_ok_and(|got| got == *part)
        });
        Ok(format!("{} equal files", equal.count()))
    }

    fn truth(&self) -> &str {
        &self.truth
    }
}

/// Gives the console these words.
fn console(run: &Run<'_>, words: &str) -> Result<String, BenchError> {
    let place = run.place();
    let file = place.write("words", words)?;
    let mut command = place.plain("sh");
    command.args(["-c", "exec bconsole -c \"$0\" < \"$1\""]).arg(place.path("console.conf")).arg(file);
    run.said(command)
}

fn write_configurations(place: &Place, ports: [u16; 3]) -> Result<(), BenchError> {
    let at = place.path("");
    let at = Path::new(&at).display().to_string();
    let filled = |text: &str| {
        let text = text.replace("FOLDER/", &at).replace("DIRECTOR", &ports[0].to_string());
        text.replace("CLIENT", &ports[1].to_string()).replace("STORAGE", &ports[2].to_string())
    };
    let mut director = filled(DIRECTOR);
    for number in 0..JOBS {
        director += &format!(
            "FileSet {{ Name = F{number}; Include {{ Options {{ signature = MD5 }} File = \"{at}data{number}\" }} }}\n\
             Job {{ Name = B{number}; JobDefs = J; FileSet = F{number} }}\n"
        );
    }
    place.write("query", "")?;
    place.write("dir.conf", director)?;
    place.write("sd.conf", filled(STORAGE))?;
    place.write("fd.conf", filled(CLIENT))?;
    place.write(
        "console.conf",
        filled("Director { Name = d; DIRport = DIRECTOR; address = 127.0.0.1; Password = \"p\" }\n"),
    )?;
    Ok(())
}

const DIRECTOR: &str = "\
Director { Name = d; DIRport = DIRECTOR; DirAddress = 127.0.0.1; QueryFile = \"FOLDER/query\"; WorkingDirectory = \"FOLDER/state\"; PidDirectory = \"FOLDER/state\"; Maximum Concurrent Jobs = 40; Password = \"p\"; Messages = M }
Catalog { Name = C; dbname = \"bacula\"; dbuser = \"\"; dbpassword = \"\" }
Client { Name = f; Address = 127.0.0.1; FDPort = CLIENT; Catalog = C; Password = \"p\"; Maximum Concurrent Jobs = 40 }
Storage { Name = s; Address = 127.0.0.1; SDPort = STORAGE; Password = \"p\"; Device = D; Media Type = File; Maximum Concurrent Jobs = 40 }
Pool { Name = P; Pool Type = Backup; Label Format = \"V-\"; Maximum Volumes = 100 }
Messages { Name = M; append = \"FOLDER/state/log\" = all }
JobDefs { Name = J; Type = Backup; Level = Full; Client = f; Storage = s; Messages = M; Pool = P; Maximum Concurrent Jobs = 40 }
Job { Name = R; Type = Restore; Client = f; Storage = s; Messages = M; Pool = P; FileSet = F0; Where = \"FOLDER/restored\" }
";

const STORAGE: &str = "\
Storage { Name = sd; SDPort = STORAGE; SDAddress = 127.0.0.1; WorkingDirectory = \"FOLDER/state\"; Pid Directory = \"FOLDER/state\"; Maximum Concurrent Jobs = 40 }
Director { Name = d; Password = \"p\" }
Device { Name = D; Media Type = File; Archive Device = \"FOLDER/store\"; LabelMedia = yes; Random Access = yes; AutomaticMount = yes; RemovableMedia = no; AlwaysOpen = no; Maximum Concurrent Jobs = 40 }
Messages { Name = M; director = d = all }
";

const CLIENT: &str = "\
FileDaemon { Name = f; FDport = CLIENT; FDAddress = 127.0.0.1; WorkingDirectory = \"FOLDER/state\"; Pid Directory = \"FOLDER/state\"; Maximum Concurrent Jobs = 40; PKI Signatures = Yes; PKI Encryption = Yes; PKI Keypair = \"FOLDER/pair.pem\"; PKI Cipher = aes256 }
Director { Name = d; Password = \"p\" }
Messages { Name = M; director = d = all, !skipped }
";
