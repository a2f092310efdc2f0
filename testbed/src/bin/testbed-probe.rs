//! Runs in the guest: does AF_ALG bind the module's driver by name, does it encrypt rightly, does the kernel measure pressure?
//!
//! One line of JSON on standard output. Status 0 if all is as it must be, 2 if the kernel has no such driver, 1 otherwise.
#![forbid(unsafe_code)]
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "prints for the user")]

use std::io::IoSlice;
use std::os::fd::AsRawFd as _;
use std::process::ExitCode;
use std::{env, fs};

use nix::errno::Errno;
use nix::libc::ALG_OP_ENCRYPT;
use nix::sys::socket::{
    AddressFamily, AlgAddr, ControlMessage, MsgFlags, SockFlag, SockType, accept, bind, recv, sendmsg,
    setsockopt, socket, sockopt,
};
use serde_json::json;

/// The module's driver, by whose name it is bound: `cbc(aes)` may be another one.
const DRIVER: &str = "virtio_crypto_aes_cbc";

// NIST SP 800-38A, F.2.1, the first block.
const KEY: u128 = 0x2b7e_1516_28ae_d2a6_abf7_1588_09cf_4f3c;
const IV: u128 = 0x0001_0203_0405_0607_0809_0a0b_0c0d_0e0f;
const PLAIN: u128 = 0x6bc1_bee2_2e40_9f96_e93d_7e11_7393_172a;
const CIPHER: u128 = 0x7649_abac_8119_b246_cee9_8e9b_12e9_197d;

fn main() -> ExitCode {
    let driver = env::args().nth(1).unwrap_or_else(|| DRIVER.to_owned());
    let encrypted = encrypt(&driver);
    let pressure: Vec<&str> = ["cpu", "io", "memory"]
        .into_iter()
        .filter(|name| fs::read(format!("/proc/pressure/{name}")).is_ok())
        .collect();
    let right = encrypted == Ok(CIPHER.to_be_bytes());
    let error = encrypted.err().map(|errno| errno.to_string());
    println!(
        "{}",
        json!({ "driver": driver, "vector_is_right": right, "error": error, "pressure": pressure })
    );
    match (encrypted, pressure.len()) {
        (Ok(_), 3) if right => ExitCode::SUCCESS,
        (Err(Errno::ENOENT), _) => ExitCode::from(2),
        _ => ExitCode::FAILURE,
    }
}

/// Encrypts the vector's block by `driver`.
fn encrypt(driver: &str) -> Result<[u8; 16], Errno> {
    let transform = socket(AddressFamily::Alg, SockType::SeqPacket, SockFlag::SOCK_CLOEXEC, None)?;
    bind(transform.as_raw_fd(), &AlgAddr::new("skcipher", driver))?;
    setsockopt(&transform, sockopt::AlgSetKey::default(), &KEY.to_be_bytes())?;
    let operation = accept(transform.as_raw_fd())?;
    let (iv, direction) = (IV.to_be_bytes(), ALG_OP_ENCRYPT);
    let settings = [ControlMessage::AlgSetOp(&direction), ControlMessage::AlgSetIv(&iv)];
    sendmsg::<()>(operation, &[IoSlice::new(&PLAIN.to_be_bytes())], &settings, MsgFlags::empty(), None)?;
    let mut cipher = [0; 16];
    recv(operation, &mut cipher, MsgFlags::empty())?;
    Ok(cipher)
}
