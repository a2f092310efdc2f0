//! The server's certificate: one that is made for this run, or one that is given and looked at before anything starts.

use std::fs;
use std::io::Write as _;
use std::net::IpAddr;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use openssl::asn1::Asn1Time;
use openssl::bn::{BigNum, MsbOption};
use openssl::ec::{EcGroup, EcKey};
use openssl::error::ErrorStack;
use openssl::hash::MessageDigest;
use openssl::nid::Nid;
use openssl::pkey::{PKey, Private};
use openssl::rsa::Rsa;
use openssl::x509::extension::{BasicConstraints, SubjectAlternativeName};
use openssl::x509::{X509, X509NameBuilder};
use zeroize::Zeroizing;

use crate::error::BenchError;

/// A certificate and its key, PEM files.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Identity {
    /// The certificate, with those that vouch for it behind it.
    pub certificate: PathBuf,
    /// Its private key.
    pub key: PathBuf,
    /// The same with an RSA key, for clients that know the suites of paper 003's day with no other.
    pub rsa: Option<(PathBuf, PathBuf)>,
}

/// NIST SP 800-57: 112 bits.
const RSA_BITS: u32 = 2_048;

/// Longer than any run.
const DAYS: u32 = 30;

impl Identity {
    /// Makes a certificate for `localhost` and `addresses`, that vouches for itself, in `folder`.
    ///
    /// # Errors
    ///
    /// [`BenchError::File`] where a file cannot be written, [`BenchError::Library`] where OpenSSL refuses.
    pub fn make(folder: &Path, addresses: &[IpAddr]) -> Result<Self, BenchError> {
        let group = EcGroup::from_curve_name(Nid::X9_62_PRIME256V1).map_err(library)?;
        let key = EcKey::generate(&group).and_then(PKey::from_ec_key).map_err(library)?;
        let rsa = Rsa::generate(RSA_BITS).and_then(PKey::from_rsa).map_err(library)?;
        let (certificate, key) = written(folder, "certificate", &key, addresses)?;
        Ok(Self { certificate, key, rsa: Some(written(folder, "rsa", &rsa, addresses)?) })
    }

    /// Looks whether the key is the certificate's and the certificate is in force.
    ///
    /// # Errors
    ///
    /// One sentence that names the file and what is to be done: [`BenchError::File`] where one cannot be read,
    /// [`BenchError::Cell`] where they do not fit.
    pub fn check(&self) -> Result<(), BenchError> {
        let certificate = read_certificate(&self.certificate)?;
        let pem = Zeroizing::new(fs::read(&self.key).map_err(|error| file(&self.key, &error))?);
        let key = PKey::private_key_from_pem(&pem)
            .map_err(|_| unfit(&self.key, "holds no private key in PEM: name one by --key"))?;
        let theirs = certificate.public_key().map_err(library)?;
        if !theirs.public_eq(&key) {
            let what = format!(
                "is not the key of {}: name the one that belongs to it by --key",
                self.certificate.display()
            );
            return Err(unfit(&self.key, &what));
        }
        let now = Asn1Time::days_from_now(0).map_err(library)?;
        let is_in_force = certificate.not_before() <= now && certificate.not_after() >= now;
        if is_in_force {
            return Ok(());
        }
        let what = format!(
            "is in force from {} to {}, which is not now: name another by --certificate",
            certificate.not_before(),
            certificate.not_after()
        );
        Err(unfit(&self.certificate, &what))
    }

    /// The SHA-256 of the certificates' public keys in base64, by which Chromium is told to trust them.
    ///
    /// # Errors
    ///
    /// As of [`Identity::check`].
    pub fn key_pins(&self) -> Result<Vec<String>, BenchError> {
        let all = std::iter::once(&self.certificate).chain(self.rsa.as_ref().map(|rsa| &rsa.0));
        let pin = |path: &PathBuf| {
            let key = read_certificate(path)?.public_key().and_then(|key| key.public_key_to_der());
            Ok(openssl::base64::encode_block(&openssl::sha::sha256(&key.map_err(library)?)))
        };
        all.map(pin).collect()
    }
}

fn read_certificate(path: &Path) -> Result<X509, BenchError> {
    let pem = fs::read(path).map_err(|error| file(path, &error))?;
    X509::from_pem(&pem).map_err(|_| unfit(path, "holds no certificate in PEM: name one by --certificate"))
}

/// Makes a certificate for `key` and writes both.
fn written(
    folder: &Path,
    name: &str,
    key: &PKey<Private>,
    addresses: &[IpAddr],
) -> Result<(PathBuf, PathBuf), BenchError> {
    let paths = (folder.join(format!("{name}.pem")), folder.join(format!("{name}.key")));
    let pem = in_force()
        .and_then(|times| made(key, addresses, &times))
        .and_then(|certificate| certificate.to_pem())
        .map_err(library)?;
    fs::write(&paths.0, pem).map_err(|error| file(&paths.0, &error))?;
    let pem = Zeroizing::new(key.private_key_to_pem_pkcs8().map_err(library)?);
    let created = fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&paths.1);
    created.and_then(|mut file| file.write_all(&pem)).map_err(|error| file(&paths.1, &error))?;
    Ok(paths)
}

/// From now on.
fn in_force() -> Result<[Asn1Time; 2], ErrorStack> {
    Ok([Asn1Time::days_from_now(0)?, Asn1Time::days_from_now(DAYS)?])
}

fn made(
    key: &PKey<Private>,
    addresses: &[IpAddr],
    [from, until]: &[Asn1Time; 2],
) -> Result<X509, ErrorStack> {
    let mut name = X509NameBuilder::new()?;
    name.append_entry_by_nid(Nid::COMMONNAME, "localhost")?;
    let name = name.build();
    let mut serial = BigNum::new()?;
    serial.rand(127, MsbOption::MAYBE_ZERO, false)?;
    let mut builder = X509::builder()?;
    builder.set_version(2)?;
    builder.set_serial_number(&*serial.to_asn1_integer()?)?;
    builder.set_subject_name(&name)?;
    builder.set_issuer_name(&name)?;
    builder.set_pubkey(key)?;
    builder.set_not_before(from)?;
    builder.set_not_after(until)?;
    builder.append_extension(BasicConstraints::new().critical().ca().build()?)?;
    let mut names = SubjectAlternativeName::new();
    names.dns("localhost");
    addresses.iter().for_each(|address| {
        names.ip(&address.to_string());
    });
    let names = names.build(&builder.x509v3_context(None, None))?;
    builder.append_extension(names)?;
    builder.sign(key, MessageDigest::sha256())?;
    Ok(builder.build())
}

pub(super) fn library(error: ErrorStack) -> BenchError {
    BenchError::Library(format!("OpenSSL: {error}"))
}

pub(super) fn file(path: &Path, error: &std::io::Error) -> BenchError {
    BenchError::File { path: path.display().to_string(), error: error.to_string() }
}

fn unfit(path: &Path, what: &str) -> BenchError {
    BenchError::Cell(format!("{} {what}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_certificate_that_is_made_fits_and_one_of_another_time_is_told() {
        let folder = tempfile::tempdir().unwrap();
        let made_now = Identity::make(folder.path(), &["127.0.0.1".parse().unwrap()]).unwrap();
        made_now.check().unwrap();
        let key = PKey::private_key_from_pem(&fs::read(&made_now.key).unwrap()).unwrap();
        let times = [1_000, 2_000].map(|second| Asn1Time::from_unix(second).unwrap());
        let old = made(&key, &[], &times).unwrap();
        fs::write(&made_now.certificate, old.to_pem().unwrap()).unwrap();
        let said = made_now.check().unwrap_err().to_string();
        assert!(said.contains("is in force from Jan  1 00:16:40 1970") && said.contains("not now"), "{said}");
    }

    #[test]
    fn a_key_that_is_made_is_for_its_owner_alone() {
        use std::os::unix::fs::PermissionsExt as _;
        let folder = tempfile::tempdir().unwrap();
        let made_now = Identity::make(folder.path(), &[]).unwrap();
        for key in [&made_now.key, &made_now.rsa.unwrap().1] {
            assert_eq!(fs::metadata(key).unwrap().permissions().mode() & 0o777, 0o600);
        }
    }
}
