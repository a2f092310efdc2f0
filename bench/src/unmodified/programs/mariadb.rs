//! MariaDB with encrypted tables and logs: several clients load tables at once.

use std::fs;
use std::process::Command;
use std::time::Duration;

use crate::error::BenchError;
use crate::unmodified::configuration::Configuration;
use crate::unmodified::place::{Place, Run, Server, said};
use crate::unmodified::program::{Cipher, Program, Work};

pub(super) struct MariaDb;

impl Program for MariaDb {
    fn name(&self) -> &'static str {
        "mariadb"
    }

    fn what(&self) -> &'static str {
        "mariadbd, InnoDB's tables and logs encrypted (pages of 16 KiB, AES-256-CBC and CTR), 4 clients load 24,000 rows of 2 KiB each, and the shutdown"
    }

    fn packages(&self) -> &'static [&'static str] {
        &["mariadb-server"]
    }

    fn needs(&self) -> &'static [&'static str] {
        &["mariadbd", "mariadb-install-db", "mariadb", "/usr/lib/mysql/plugin/file_key_management.so"]
    }

    fn cipher(&self) -> Cipher {
        Cipher { name: "aes-256-cbc", bytes: 16 << 10, is_decrypted: false, volume_bytes: 400_000_000 }
    }

    fn hand(&self) -> &'static [&'static str] {
        &["kernels = on"]
    }

    fn prepare(&self, place: &Place) -> Result<Box<dyn Work>, BenchError> {
        place.write("keys", "1;00112233445566778899aabbccddeeff0123456789abcdef0123456789abcdef\n")?;
        let mut install = place.plain("mariadb-install-db");
        let data = place.path("template");
        install.args([
            "--no-defaults",
            "--user=root",
            "--auth-root-authentication-method=normal",
            "--skip-test-db",
        ]);
        install.arg(format!("--datadir={}", data.display()));
        said(install)?;
        let mut load = Load { truth: String::new() };
        load.truth = load.loaded(&place.run(Configuration::Plain, None))?;
        Ok(Box::new(load))
    }
}

struct Load {
    truth: String,
}

impl Load {
    fn loaded(&self, run: &Run<'_>) -> Result<String, BenchError> {
        let place = run.place();
        let mut copy = place.plain("sh");
        copy.args(["-ec", "rm -rf data; cp -r template data"]);
        said(copy)?;
        let mut server = started(place, run.command("mariadbd"))?;
        run.counts_server(&server);
        run.timed(|| {
            let mut clients = place.plain("sh");
            clients.args(["-ec", LOAD]);
            run.said(clients)?;
            shut_down(place, &mut server)
        })?;
        let mut reader = started(place, place.plain("mariadbd"))?;
        let sums = said(client(place, "checksum table test.t1, test.t2, test.t3, test.t4"))?;
        shut_down(place, &mut reader)?;
        Ok(sums)
    }
}

impl Work for Load {
    fn once(&mut self, run: &Run<'_>) -> Result<String, BenchError> {
        self.loaded(run)
    }

    fn truth(&self) -> &str {
        &self.truth
    }
}

fn started(place: &Place, mut command: Command) -> Result<Server, BenchError> {
    let [data, socket, keys] = ["data", "socket", "keys"].map(|name| place.path(name).display().to_string());
    // One of a server before this one.
    fs::remove_file(&socket).unwrap_or_default();
    command.args([
        "--no-defaults",
        "--user=root",
        "--skip-networking",
        "--plugin-load-add=file_key_management",
    ]);
    command.args([
        format!("--datadir={data}"),
        format!("--socket={socket}"),
        format!("--file-key-management-filename={keys}"),
    ]);
    command.args([
        "--innodb-encrypt-tables=FORCE",
        "--innodb-encrypt-log=ON",
        "--innodb-buffer-pool-size=64M",
    ]);
    command.args(["--innodb-encryption-threads=0", "--pid-file=pid", "--lc-messages-dir=/usr/share/mysql"]);
    Server::start(command, || said(client(place, "select 1")).is_ok())
}

fn client(place: &Place, query: &str) -> Command {
    let mut command = place.plain("mariadb");
    command
        .args(["--no-defaults", "-uroot", "-N", "-e", query])
        .arg(format!("--socket={}", place.path("socket").display()));
    command
}

fn shut_down(place: &Place, server: &mut Server) -> Result<(), BenchError> {
    said(client(place, "shutdown"))?;
    server.wait_for_its_end(Duration::from_secs(60));
    Ok(())
}

const LOAD: &str = "
c='mariadb --no-defaults -uroot --socket=socket'
$c -e 'create database if not exists test'
for i in 1 2 3 4; do
    $c test -e \"create table t$i (a int primary key, v varchar(4000)) charset latin1; insert into t$i select seq, repeat(md5(seq + $i), 64) from seq_1_to_24000\" & pids=\"$pids $!\"
done
for pid in $pids; do wait $pid; done
";
