//! Programs that are started and measured: their time, their instructions and system calls, their OpenSSL configuration.

pub mod cluster;
pub mod counters;
pub mod host;
pub mod openssh;
pub mod openssl_conf;
pub mod port;
pub mod stopwatch;
