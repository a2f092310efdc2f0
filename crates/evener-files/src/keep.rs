//! What of a tree is kept beside contents, names, modes and times of change. All of it is, unless the user says otherwise: what
//! cannot be kept is a failure.

/// What is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(clippy::struct_excessive_bools, reason = "one per option of the command")]
pub struct Keep {
    /// Symbolic links, as links; else they are left out.
    pub links: bool,
    /// Whether devices, sockets and pipes, which are never kept, are failures; else they are left out.
    pub specials: bool,
    /// Owner and group, where the run may set them: as root.
    pub owners: bool,
    /// Access lists, those for new files in a directory too.
    pub acls: bool,
    /// Extended attributes: the user's and, as root, trusted ones and capabilities.
    pub xattrs: bool,
    /// That names of one file are names of one file in the output too.
    pub hard_links: bool,
    /// Holes: runs of zeros in a decrypted file take no room.
    pub holes: bool,
}

impl Default for Keep {
    fn default() -> Self {
        Self {
            links: true,
            specials: true,
            owners: true,
            acls: true,
            xattrs: true,
            hard_links: true,
            holes: true,
        }
    }
}
