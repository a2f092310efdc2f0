//! What of a tree is kept beside contents, names, modes and times of change. All of it is, unless the user says otherwise: what
//! cannot be kept is a failure.

use std::ffi::CStr;

/// What is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(clippy::struct_excessive_bools, reason = "one per option of the command")]
pub struct Keep {
    /// Symbolic links, as links; else they are left out.
    pub links: bool,
    /// Also those of other users that lead out of the tree; else each is a failure.
    pub foreign_links: bool,
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
    /// Holes: runs of zeros in a decrypted file take no space.
    pub holes: bool,
}

impl Keep {
    /// Whether a symbolic link is kept that lies `above` directories below the root of its tree and belongs to `owner`.
    ///
    /// A stranger's that leads out of the tree is not: it could lead a reader of the output to what the stranger may not read, and
    /// where owners are not kept it would become a link of the user's own, which is followed.
    pub(crate) fn takes_link(&self, target: &CStr, owner: u32, above: usize) -> bool {
        let is_trusted = owner == 0 || owner == rustix::process::geteuid().as_raw();
        self.foreign_links || is_trusted || stays_below(target.to_bytes(), above)
    }
}

/// Whether a link's target is below the root by its names alone: it goes up at its start only, and not too far.
fn stays_below(target: &[u8], above: usize) -> bool {
    let mut names = target.split(|byte| *byte == b'/').filter(|name| !matches!(*name, b"" | b"."));
    let ups = names.by_ref().take_while(|name| *name == b"..").count();
    // The first name that is none was taken, too, and changes nothing.
    !target.starts_with(b"/") && ups <= above && names.all(|name| name != b"..")
}

impl Default for Keep {
    fn default() -> Self {
        Self {
            links: true,
            foreign_links: false,
            specials: true,
            owners: true,
            acls: true,
            xattrs: true,
            hard_links: true,
            holes: true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_strangers_link_is_taken_where_it_stays_in_the_tree() {
        let keep = Keep::default();
        let stranger = 4_000_000_001;
        for (target, above, is_taken) in [
            (c"f", 0, true),
            (c"./d//f", 0, true),
            (c"..", 1, true),
            (c"../../x/y", 2, true),
            (c"..", 0, false),
            (c"../../x", 1, false),
            (c"d/../f", 1, false),
            (c"/etc/passwd", 9, false),
            (c"", 0, true),
            (c"...", 0, true),
        ] {
            assert_eq!(keep.takes_link(target, stranger, above), is_taken, "{target:?} {above}");
            assert!(keep.takes_link(target, 0, above), "root's own");
            assert!(Keep { foreign_links: true, ..keep }.takes_link(target, stranger, above));
        }
    }
}
