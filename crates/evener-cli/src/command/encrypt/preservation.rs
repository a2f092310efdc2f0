//! What of a tree is kept, as options: each leaves one kind out.

use evener_files::Keep;

/// What is left out.
#[derive(clap::Args)]
#[command(next_help_heading = "Files")]
#[allow(clippy::struct_excessive_bools, reason = "each is an option")]
pub(crate) struct KeepOptions {
    /// Leaves symbolic links out; unless given, they are kept as links and never followed.
    #[arg(hide_short_help = true, long)]
    skip_links: bool,

    /// Keeps symbolic links of other users that lead out of the tree, too; unless given, each is a failure, for who reads the output
    /// would be led where its owner may not go. Those of root and one's own are always kept.
    #[arg(hide_short_help = true, long, conflicts_with = "skip_links")]
    foreign_links: bool,

    /// Leaves devices, sockets and pipes out; unless given, each is a failure, for they are never kept.
    #[arg(hide_short_help = true, long)]
    skip_specials: bool,

    /// Leaves owner and group out, which are kept as root only.
    #[arg(hide_short_help = true, long)]
    no_owner: bool,

    /// Leaves access lists out.
    #[arg(hide_short_help = true, long)]
    no_acls: bool,

    /// Leaves extended attributes out.
    #[arg(hide_short_help = true, long)]
    no_xattrs: bool,

    /// Makes a file of each name of a file that has several.
    #[arg(hide_short_help = true, long)]
    no_hard_links: bool,

    /// Writes runs of zeros in decrypted files instead of leaving holes.
    #[arg(hide_short_help = true, long)]
    no_sparse: bool,
}

impl KeepOptions {
    pub(crate) fn keep(&self) -> Keep {
        Keep {
            links: !self.skip_links,
            foreign_links: self.foreign_links,
            specials: !self.skip_specials,
            owners: !self.no_owner,
            acls: !self.no_acls,
            xattrs: !self.no_xattrs,
            hard_links: !self.no_hard_links,
            holes: !self.no_sparse,
        }
    }
}
