//! SHA-1, SHA-256 and HMAC over them: serial inside a message, so messages go side by side, one in each lane.
//!
//! Path of a group of jobs of one algorithm: keys of HMAC are found, or made, and held -> each job becomes the last span of a hash of its own -> the lanes, for
//! HMAC twice, once more for the digest under the outer key.

use std::sync::Arc;

use evener_core::job::{Memory, Parts};
use evener_core::{Family, HasEnded, Hash, Job, JobError, SessionCache};
use evener_kernels::hashes::{self, Lanes, MacKey, Means, Running, Span};

/// Sessions whose keys are kept, as of CBC. Assumed, not measured: 128.
const SESSIONS_MAX: usize = 128;

/// Lanes, and prepared keys of HMAC.
pub(crate) struct Hashes {
    lanes: Lanes,
    keys: SessionCache<Arc<MacKey>, SESSIONS_MAX>,
    /// Empty: kept for its memory.
    under_way: Vec<UnderWay>,
}

/// A job's hash.
struct UnderWay {
    running: Running,
    key: Option<Arc<MacKey>>,
    digest: [u8; hashes::Hash::DIGEST_BYTES_MAX],
}

impl Hashes {
    pub(crate) fn new(means: Means) -> Self {
        Self { lanes: Lanes::new(means), keys: SessionCache::default(), under_way: Vec::new() }
    }

    /// Runs jobs of one algorithm.
    pub(crate) fn run(&mut self, jobs: &mut [Box<Job<'_>>]) {
        let Some(hash) = jobs.first().and_then(|job| kernel_of(job.session().algorithm().family())) else {
            return jobs.iter_mut().for_each(|job| job.fail(JobError::Unsupported));
        };
        for job in &mut *jobs {
            let (running, key) = match job.session().algorithm().family() {
                Family::Hmac(_) => {
                    let key = self.key(job, hash);
                    (key.inner(), Some(key))
                }
                _ => (Running::new(hash), None),
            };
            self.under_way.push(UnderWay { running, key, digest: [0; hashes::Hash::DIGEST_BYTES_MAX] });
        }
        let each = jobs.iter_mut().zip(&mut self.under_way);
        let mut spans: Vec<_> = each.map(|(job, under_way)| span(job, &mut under_way.running)).collect();
        self.lanes.run(&mut spans);
        drop(spans);
        self.go_outside();
        for (job, under_way) in jobs.iter_mut().zip(&self.under_way) {
            under_way.running.digest(job.tag_mut());
            job.done(0);
        }
        self.under_way.clear();
    }

    /// Has what is under a key hashed under its outer one.
    fn go_outside(&mut self) {
        let mut spans = Vec::new();
        for UnderWay { running, key, digest } in &mut self.under_way {
            let Some(key) = key else { return };
            let inner = std::mem::replace(running, key.outer());
            let bytes = inner.digest(digest);
            spans.push(Span::last(running, &digest[..bytes]));
        }
        self.lanes.run(&mut spans);
    }

    fn key(&mut self, job: &Job<'_>, hash: hashes::Hash) -> Arc<MacKey> {
        let lanes = &mut self.lanes;
        let made = self.keys.prepared(job.session(), |session| {
            Ok::<_, std::convert::Infallible>(Arc::new(MacKey::new(lanes, hash, session.key())))
        });
        match made {
            Ok(key) => Arc::clone(key),
            Err(never) => match never {},
        }
    }

    pub(crate) fn evict(&mut self, has_ended: HasEnded<'_>) {
        self.keys.evict(has_ended);
        self.lanes.forget();
    }
}

/// The hash that lanes have for a family; none where they have none.
pub(crate) const fn kernel_of(family: Family) -> Option<hashes::Hash> {
    match family {
        Family::Digest(Hash::Sha1) | Family::Hmac(Hash::Sha1) => Some(hashes::Hash::Sha1),
        Family::Digest(Hash::Sha256) | Family::Hmac(Hash::Sha256) => Some(hashes::Hash::Sha256),
        _ => None,
    }
}

/// All that a job has to be hashed.
fn span<'j>(job: &'j mut Job<'_>, running: &'j mut Running) -> Span<'j> {
    if let Some(shared) = job.shared_span() {
        return Span::last_shared(running, shared.src);
    }
    let Parts { memory, .. } = job.parts();
    match memory {
        Memory::InPlace { space, input_bytes } => Span::last(running, &space[..input_bytes]),
        Memory::Apart { src, .. } => Span::last(running, src),
    }
}
