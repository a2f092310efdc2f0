//! The programs: what each prepares, and what it does in a run. Scripts of `sh`, whose processes have all ended when they end.

/// A program as its own makers built it.
pub(super) struct Program {
    pub(super) name: &'static str,
    pub(super) what: &'static str,
    /// Commands that succeed where it is installed.
    pub(super) needs: &'static [&'static str],
    /// Whether it must not be root's.
    pub(super) is_postgres: bool,
    pub(super) prepare: &'static str,
    pub(super) work: &'static str,
}

/// All of them.
pub(super) const PROGRAMS: [Program; 5] = [
    Program {
        name: "openssl",
        what: "16 at once: openssl enc -aes-256-cbc, 128 MiB each",
        needs: &["command -v openssl"],
        is_postgres: false,
        prepare: "head -c 134217728 /dev/zero > text",
        work: "
            for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16; do
                openssl enc -aes-256-cbc -K 00112233445566778899aabbccddeeff0123456789abcdef0123456789abcdef \
                    -iv ffeeddccbbaa99887766554433221100 -in text -out /dev/null &
            done; wait",
    },
    Program {
        name: "pgcrypto",
        what: "PostgreSQL: 8 backends at once, encrypt() by AES-128-CBC of 960 values of 256 KiB each",
        needs: &["test -x $PG/postgres", "test -e $PG/../../../share/postgresql/*/extension/pgcrypto.control || test -e /usr/share/postgresql/*/extension/pgcrypto.control"],
        is_postgres: true,
        prepare: "
            $PG/initdb -A trust -N -D data >/dev/null
            printf \"listen_addresses = ''\\nunix_socket_directories = '%s'\\nfsync = off\\nshared_buffers = 256MB\\n\" $FOLDER >> data/postgresql.conf
            $PG/postgres -D data >log 2>&1 & server=$!
            until $PG/pg_isready -q -h $FOLDER; do sleep 0.05; done
            $PG/psql -q -h $FOLDER postgres -c 'create extension pgcrypto' -c 'create table t (v bytea)' \
                -c 'alter table t alter v set storage external' \
                -c \"insert into t select convert_to(repeat(md5(i::text), 8192), 'UTF8') from generate_series(1, 40) i\"
            kill -INT $server; wait $server",
        work: "
            $PG/postgres -D data >log 2>&1 & server=$!
            until $PG/pg_isready -q -h $FOLDER; do sleep 0.05; done
            clients=
            for i in 1 2 3 4 5 6 7 8; do
                $PG/psql -q -h $FOLDER postgres -o /dev/null \
                    -c \"select sum(length(encrypt(v, '0123456789abcdef', 'aes-cbc'))) from t, generate_series(1, 24)\" &
                clients=\"$clients $!\"
            done
            wait $clients; kill -INT $server; wait $server",
    },
    Program {
        name: "pgbackrest",
        what: "a full backup of 300 MB, process-max=8, repo-cipher-type=aes-256-cbc, compress-type=none",
        needs: &["command -v pgbackrest", "test -x $PG/pgbench"],
        is_postgres: true,
        prepare: "
            mkdir repository backups lock spool
            printf '[global]\\nrepo1-path=%s/repository\\nrepo1-cipher-type=aes-256-cbc\\nrepo1-cipher-pass=correct horse battery staple\\n' $FOLDER > backup.conf
            printf 'compress-type=none\\nprocess-max=8\\nstart-fast=y\\nlog-level-console=error\\nlog-level-file=off\\n' >> backup.conf
            printf 'lock-path=%s/lock\\nspool-path=%s/spool\\n[main]\\npg1-path=%s/data\\npg1-socket-path=%s\\n' $FOLDER $FOLDER $FOLDER $FOLDER >> backup.conf
            $PG/initdb -A trust -N -D data >/dev/null
            printf \"listen_addresses = ''\\nunix_socket_directories = '%s'\\nfsync = off\\nmax_wal_size = 4GB\\narchive_mode = on\\n\" $FOLDER >> data/postgresql.conf
            printf \"archive_command = 'pgbackrest --config=%s/backup.conf --stanza=main archive-push %%p'\\n\" $FOLDER >> data/postgresql.conf
            $PG/postgres -D data >log 2>&1 & server=$!
            until $PG/pg_isready -q -h $FOLDER; do sleep 0.05; done
            $PG/pgbench -q -i -s 20 -h $FOLDER postgres 2>/dev/null
            pgbackrest --config=$FOLDER/backup.conf --stanza=main stanza-create
            kill -INT $server; wait $server",
        work: "
            $PG/postgres -D data >log 2>&1 & server=$!
            until $PG/pg_isready -q -h $FOLDER; do sleep 0.05; done
            pgbackrest --config=$FOLDER/backup.conf --stanza=main backup --type=full --repo1-retention-full=1
            kill -INT $server; wait $server",
    },
    Program {
        name: "sqlcipher",
        what: "60 connections at once to one database of 40 MB, each reads all of it (pages of 1 KiB, AES-256-CBC)",
        needs: &["command -v sqlcipher"],
        is_postgres: false,
        prepare: "
            printf '%s\\n' \"PRAGMA key = \\\"x'00112233445566778899aabbccddeeff0123456789abcdef0123456789abcdef'\\\";\" > key
            printf '%s\\n' 'create table t (v);' \
                'with recursive n(i) as (select 1 union all select i + 1 from n where i < 40000) insert into t select randomblob(900) from n;' > fill
            cat key fill | sqlcipher data
            printf '%s\\n' 'select sum(length(v)) from t;' > read",
        work: "
            i=0
            while [ $i -lt 60 ]; do cat key read | sqlcipher data >/dev/null & i=$((i + 1)); done
            wait",
    },
    Program {
        name: "libmongocrypt",
        what: "8 processes at once, explicit encryption of 800 values of 256 KiB each (AES-256-CBC, HMAC-SHA-512)",
        needs: &["python3 -c 'import pymongocrypt'", "ldconfig -p | grep -q libmongocrypt.so.0"],
        is_postgres: false,
        prepare: "
            cat > work.py <<'END'
import bson, pymongocrypt.mongocrypt as binding
from pymongocrypt.explicit_encrypter import ExplicitEncrypter
from pymongocrypt.mongocrypt import MongoCryptOptions
from pymongocrypt.state_machine import MongoCryptCallback

# The package has the library call pyca/cryptography, with an OpenSSL of its own, for ciphers. Without that the library asks the system's libcrypto itself.
class Native:
    library = binding.lib
    def __getattr__(self, name):
        if name.startswith('mongocrypt_setopt_cr') or name == 'mongocrypt_setopt_aes_256_ctr': return lambda *words: True
        return getattr(self.library, name)
binding.lib = Native()

class Callback(MongoCryptCallback):
    key = None
    def kms_request(self, context): raise NotImplementedError
    def collection_info(self, database, filter): return None
    def mark_command(self, database, cmd): return None
    def fetch_keys(self, filter): return [self.key]
    def insert_data_key(self, data_key): self.key = bson.encode(dict(bson.decode(data_key))); return bson.decode(data_key)['_id']
    def bson_encode(self, doc): return bson.encode(doc)
    def close(self): pass

encrypter = ExplicitEncrypter(Callback(), MongoCryptOptions({'local': {'key': b'k' * 96}}))
key_id = encrypter.create_data_key('local')
text = bson.encode({'v': b'v' * 262144})
for i in range(800):
    encrypter.encrypt(text, 'AEAD_AES_256_CBC_HMAC_SHA_512-Random', key_id=key_id)
END
            PYMONGOCRYPT_LIB=$(ldconfig -p | sed -n 's/.*libmongocrypt.so.0.*=> //p' | head -1) python3 work.py",
        work: "
            export PYMONGOCRYPT_LIB=$(ldconfig -p | sed -n 's/.*libmongocrypt.so.0.*=> //p' | head -1)
            for i in 1 2 3 4 5 6 7 8; do python3 work.py & done; wait",
    },
];
