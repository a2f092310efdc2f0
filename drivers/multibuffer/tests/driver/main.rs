//! The driver as its users see it: judged by libcrypto and by published vectors, present and absent.

#[cfg(test)]
mod against_libcrypto;
#[cfg(test)]
mod shared_spans;
#[cfg(test)]
mod unavailable;
#[cfg(test)]
mod vectors;
