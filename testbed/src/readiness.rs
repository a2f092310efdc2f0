//! Whether the test bed is set up: what the last setting up left under a profile's folder.

use std::fs;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::error::Error;
use crate::image::initramfs;
use crate::profile::Profile;

/// What a set-up test bed consists of.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ready {
    /// The kernel's package.
    pub kernel: String,
    /// Its version.
    pub kernel_version: String,
    /// Whether it is the version that everything was tried with.
    pub kernel_is_pinned: bool,
    /// What the base is made of ([`initramfs::recipe`]): another one makes it anew.
    pub(crate) recipe: String,
}

/// What was set up.
///
/// # Errors
///
/// [`Error::NotUp`] where [`up`](crate::up) has not come to its end or is to be run again; [`Error::Packages`] where its first guest
/// had no usable module, which tests must not pass over as an absence.
pub fn check(profile: Profile) -> Result<Ready, Error> {
    if let Ok(reason) = fs::read_to_string(refusal(profile)) {
        return Err(Error::Packages(reason));
    }
    let text = fs::read_to_string(mark(profile)).map_err(|_| Error::NotUp)?;
    let ready: Ready = serde_json::from_str(&text).map_err(|_| Error::NotUp)?;
    if ready.recipe == initramfs::recipe(profile) { Ok(ready) } else { Err(Error::NotUp) }
}

pub(crate) fn mark(profile: Profile) -> PathBuf {
    profile.folder().join("ready")
}

/// Holds the reason for which the first guest was of no use.
pub(crate) fn refusal(profile: Profile) -> PathBuf {
    profile.folder().join("refused")
}
