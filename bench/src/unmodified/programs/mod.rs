//! The programs, in the order of the table; a file for each kind.

mod bacula;
mod mariadb;
mod openssl_enc;
mod openvpn;
mod pgbackrest;
mod php;
mod python;
mod sftp;
mod sqlcipher;
mod web;

use super::program::Program;

/// All programs.
pub const ALL: &[&dyn Program] = &[
    &python::AESGCM_16K,
    &python::AESGCM_1M,
    &php::GCM_8M,
    &php::GCM_256M,
    &web::NGINX,
    &web::HAPROXY,
    &sftp::Sftp,
    &bacula::Bacula,
    &openvpn::OpenVpn,
    &sqlcipher::SqlCipher,
    &mariadb::MariaDb,
    &pgbackrest::PgBackRest,
    &openssl_enc::CTR,
    &openssl_enc::CBC_DECRYPTION,
];
