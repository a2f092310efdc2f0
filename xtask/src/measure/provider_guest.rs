//! A guest in which OpenSSL loads Evener's provider.

use std::fs;
use std::time::Duration;

use evener_testbed::{Builder, Guest};

use crate::programs::built_of;

/// For the longest of these, five rounds with two ciphers.
const LIMIT: Duration = Duration::from_secs(3_600);

/// The provider in the guest, among the libraries, which come with what they need.
const PROVIDER: &str = "/lib/x86_64-linux-gnu/evener.so";

/// A guest with the provider, and the configuration that loads it with the module behind the kernel.
pub(super) fn with_provider() -> Result<Builder, String> {
    let built = built_of("evener-provider", &["--lib"])?.join("libevener_provider.so");
    let configuration = format!(
        "openssl_conf = init\n[init]\nproviders = providers\nalg_section = algorithms\nrandom = random\n\
         [providers]\ndefault = default_sect\nevener = evener_sect\n[default_sect]\nactivate = 1\n\
         [evener_sect]\nidentity = evener\nmodule = {PROVIDER}\nactivate = 1\nmodules = afalg:virtio_crypto_aes_cbc\n\
         [algorithms]\ndefault_properties = ?provider=evener\n[random]\nproperties = provider=default\n"
    );
    // OpenSSL wants it under this name.
    let named = built.with_file_name("evener.so");
    fs::copy(&built, &named).map_err(|error| format!("{}: {error}", named.display()))?;
    let builder = Guest::builder().user_space_module().library(named);
    Ok(builder.file("/etc/evener.cnf", configuration).limit(LIMIT))
}
