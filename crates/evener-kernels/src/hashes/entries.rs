//! The kernels by means: each names its register or its number of chains and switches the instructions on for all that is inlined into it.

use super::space::{LONG_STRIDE, STRIDE, Space};
use super::words::{Eight, EightLong, FourLong, Sixteen};
use super::{Hash, Kind, LANES_MAX, Means, Width, extensions, sha1, sha2};

/// Takes so many blocks of each of its lanes, from this one on, into their states. Called only where the processor has the instructions.
type Kernel = unsafe fn(space: &mut Space, first: usize, blocks: usize);

/// What runs a hash.
pub(super) struct Kernels {
    pub(super) width: Width,
    /// Messages side by side.
    pub(super) lanes: usize,
    /// All lanes at once.
    all: Option<Kernel>,
    /// So many messages at least are worth that.
    all_from: usize,
    /// One lane, two and so on, by the SHA extensions.
    few: &'static [Kernel],
}

impl Kernels {
    /// Those of a hash; none where there are none.
    pub(super) fn of(hash: Hash, means: Means) -> Option<Self> {
        let of_extensions = if means.has_sha() { extensions_of(hash) } else { &[] };
        // From how many messages on they beat pairs by the extensions: measured with `examples/hashes_speed.rs` on Sapphire Rapids, a turn of all lanes
        // in 306, 171 and 186 ns beside 64 and 68 ns of a pair.
        let all: Option<(Kernel, usize, usize)> = match (hash.kind(), means.bits()) {
            (Kind::One, 512) => Some((sha_1_by_sixteen, 16, 5)),
            (Kind::One, 256) => Some((sha_1_by_eight, 8, 5)),
            (Kind::Narrow, 512) => Some((sha_256_by_sixteen, 16, 9)),
            // Slower than pairs by the extensions.
            (Kind::Narrow, 256) if !means.has_sha() => Some((sha_256_by_eight, 8, 1)),
            (Kind::Long, 512) => Some((sha_512_by_eight, 8, 1)),
            (Kind::Long, 256) => Some((sha_512_by_four, 4, 1)),
            _ => None,
        };
        if all.is_none() && of_extensions.is_empty() {
            return None;
        }
        let lanes = all.map_or(of_extensions.len(), |(_, lanes, _)| lanes);
        let all_from = all.filter(|_| !of_extensions.is_empty()).map_or(1, |(.., from)| from);
        Some(Self { width: hash.width(), lanes, all: all.map(|(all, ..)| all), all_from, few: of_extensions })
    }

    /// The lanes that are run next, where so many are in use: the first of them, and how many.
    pub(super) fn turn(&self, active: usize) -> (usize, usize) {
        if self.takes_all(active) {
            return (0, active);
        }
        let count = active.min(self.few.len());
        (active - count, count)
    }

    /// Runs those.
    ///
    /// # Safety
    /// The processor has the instructions; the places of those lanes are good for as many blocks.
    pub(super) unsafe fn run(&self, space: &mut Space, active: usize, blocks: usize) {
        let (first, count) = self.turn(active);
        match self.all.filter(|_| self.takes_all(active)) {
            Some(all) => {
                space.imitate(active, self.lanes);
                // SAFETY: as the caller says.
                unsafe { all(space, 0, blocks) }
            }
            // SAFETY: as the caller says.
            None => unsafe { self.few[count - 1](space, first, blocks) },
        }
    }

    fn takes_all(&self, active: usize) -> bool {
        self.all.is_some() && active >= self.all_from
    }
}

fn extensions_of(hash: Hash) -> &'static [Kernel] {
    match hash.kind() {
        Kind::One => &[sha_1_of_one, sha_1_of_two],
        Kind::Narrow => &[sha_256_of_one, sha_256_of_two],
        Kind::Long => &[],
    }
}

macro_rules! of_all {
    ($name:ident, $compress:path, $states:ident, $stride:expr, $features:literal) => {
        #[target_feature(enable = $features)]
        unsafe fn $name(space: &mut Space, _: usize, blocks: usize) {
            $compress(space.$states.as_mut_ptr(), $stride, space.from.as_ptr(), blocks)
        }
    };
}

of_all!(sha_1_by_eight, sha1::compress::<Eight>, states, STRIDE, "avx2");
of_all!(sha_1_by_sixteen, sha1::compress::<Sixteen>, states, STRIDE, "avx2,avx512f,avx512bw,avx512vl");
of_all!(sha_256_by_eight, sha2::compress::<Eight>, states, STRIDE, "avx2");
of_all!(sha_256_by_sixteen, sha2::compress::<Sixteen>, states, STRIDE, "avx2,avx512f,avx512bw,avx512vl");
of_all!(sha_512_by_four, sha2::compress::<FourLong>, long_states, LONG_STRIDE, "avx2");
of_all!(
    sha_512_by_eight,
    sha2::compress::<EightLong>,
    long_states,
    LONG_STRIDE,
    "avx2,avx512f,avx512bw,avx512vl"
);

macro_rules! of_few {
    ($name:ident, $hash:ident, $count:literal) => {
        #[target_feature(enable = "sha,sse4.1,ssse3")]
        unsafe fn $name(space: &mut Space, first: usize, blocks: usize) {
            debug_assert!((first..LANES_MAX).len() >= $count, "lanes that there are");
            let states = space.states.as_mut_ptr().add(first);
            extensions::compress::<extensions::$hash, $count>(states, space.from.as_ptr().add(first), blocks)
        }
    };
}

of_few!(sha_256_of_one, Sha256, 1);
of_few!(sha_256_of_two, Sha256, 2);
of_few!(sha_1_of_one, Sha1, 1);
of_few!(sha_1_of_two, Sha1, 2);
