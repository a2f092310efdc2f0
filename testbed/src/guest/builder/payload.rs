//! What lies in a guest beside what its user put there: openssl with its engine, and the settings that init reads.

use std::path::Path;

use super::{Builder, USER_SPACE_MODULE};
use crate::error::{Error, at};

impl Builder {
    /// Adds openssl with its afalg engine, and the settings for init.
    pub(super) fn complete_payload(&mut self) -> Result<(), Error> {
        let root = self.profile.userland();
        let openssl = root.join("usr/bin/openssl");
        if openssl.is_file() {
            self.payload.programs.push(openssl);
            self.add_engine(&root)?;
        }
        let facts = self.profile.facts();
        let network = if self.network { "virtio_net" } else { "" };
        let share = if self.share.is_some() { "9pnet_virtio 9p" } else { "" };
        let modules = format!("{} {network} {share} {}", facts.modules, self.kernel_modules.join(" "));
        let user_space = if self.user_space_module { USER_SPACE_MODULE } else { "" };
        let yes = |on: bool| if on { "yes" } else { "" };
        self.setting(&format!(
            "modules='{modules}'\nnetwork={}\nshare={}\nlent={}\nconsole={}\nuser_space={user_space}\n",
            yes(self.network),
            yes(self.share.is_some()),
            yes(self.is_lent),
            facts.console
        ));
        Ok(())
    }

    /// The engine is opened at run time, and OpenSSL wants a configuration, be it an empty one.
    fn add_engine(&mut self, root: &Path) -> Result<(), Error> {
        let path = self.profile.facts().afalg_engine;
        let engine = root.join(path.trim_start_matches('/'));
        if engine.is_file() {
            let bytes = std::fs::read(&engine).map_err(|error| at(&engine, error))?;
            self.payload.files.push((path.to_owned(), bytes));
        }
        self.payload.files.push(("usr/lib/ssl/openssl.cnf".to_owned(), b"openssl_conf = d\n[d]\n".to_vec()));
        Ok(())
    }

    pub(super) fn setting(&mut self, lines: &str) {
        match self.payload.files.iter_mut().find(|(path, _)| path == SETTINGS) {
            Some((_, text)) => text.extend_from_slice(lines.as_bytes()),
            None => self.payload.files.push((SETTINGS.to_owned(), lines.as_bytes().to_vec())),
        }
    }
}

/// Settings that init reads.
const SETTINGS: &str = "etc/testbed";
