//! SHA-1, SHA-256 and HMAC over them: serial inside a message, so messages go side by side, one in each lane.
//!
//! Path of a group of jobs of one algorithm: keys of HMAC are found, or made, and held -> each job becomes the last span of a hash of its own -> the lanes, for
//! HMAC twice, once more for the digest under the outer key, and the stack is wiped behind it.

use std::mem;
use std::sync::Arc;

use evener_core::job::{Memory, Parts};
use evener_core::{Family, HasEnded, Hash, Job, JobError, SessionCache};
use evener_kernels::hashes::{self, Lanes, MacKey, Means, Running, Span, with_stack_wiped};

/// Sessions whose keys are kept, as of CBC. Assumed, not measured: 128.
const SESSIONS_MAX: usize = 128;

/// Lanes, and prepared keys of HMAC.
pub(crate) struct Hashes {
    lanes: Lanes,
    keys: SessionCache<Arc<MacKey>, SESSIONS_MAX>,
    /// Empty: kept for its memory, as what follows.
    under_way: Vec<UnderWay>,
    spans: Vec<Span<'static>>,
}

/// A job's hash.
struct UnderWay {
    running: Running,
    key: Option<Arc<MacKey>>,
}

impl UnderWay {
    /// What is under a key goes on under its outer one. The job's tag is the inner digest until then.
    fn around<'a>(&'a mut self, job: &'a mut Job<'_>) -> Option<Span<'a>> {
        Some(self.key.as_ref()?.outer(&mut self.running, job.tag_mut()))
    }
}

impl Hashes {
    pub(crate) fn new(means: Means) -> Self {
        let (lanes, keys) = (Lanes::new(means), SessionCache::default());
        Self { lanes, keys, under_way: Vec::new(), spans: Vec::new() }
    }

    /// Runs jobs of one algorithm.
    pub(crate) fn run(&mut self, jobs: &mut [Box<Job<'_>>]) {
        let Some(family) = jobs.first().map(|job| job.session().algorithm().family()) else { return };
        match (kernel_of(family), family) {
            (Some(hash), Family::Hmac(_)) => with_stack_wiped(|| self.hash(hash, jobs)),
            (Some(hash), _) => self.hash(hash, jobs),
            (None, _) => jobs.iter_mut().for_each(|job| job.fail(JobError::Unsupported)),
        }
    }

    fn hash(&mut self, hash: hashes::Hash, jobs: &mut [Box<Job<'_>>]) {
        self.begin(hash, jobs);
        let mut spans = emptied(mem::take(&mut self.spans));
        spans.reserve(jobs.len());
        let each = jobs.iter_mut().zip(&mut self.under_way);
        spans.extend(each.map(|(job, under_way)| span(job, &mut under_way.running)));
        self.lanes.run(&mut spans);
        let mut spans = emptied(spans);
        let each = jobs.iter_mut().zip(&mut self.under_way);
        spans.extend(each.filter_map(|(job, under_way)| under_way.around(job)));
        self.lanes.run(&mut spans);
        self.spans = emptied(spans);
        for (job, under_way) in jobs.iter_mut().zip(&self.under_way) {
            under_way.running.digest(job.tag_mut());
            job.done(0);
        }
        self.under_way.clear();
    }

    /// Begins a hash for each job.
    fn begin(&mut self, hash: hashes::Hash, jobs: &[Box<Job<'_>>]) {
        self.under_way.reserve(jobs.len());
        let place = self.under_way.as_ptr();
        for job in jobs {
            let (running, key) = match job.session().algorithm().family() {
                Family::Hmac(_) => {
                    let key = self.key(job, hash);
                    (key.inner(), Some(key))
                }
                _ => (Running::new(hash), None),
            };
            self.under_way.push(UnderWay { running, key });
        }
        debug_assert_eq!(place, self.under_way.as_ptr(), "a vector that grows leaves states of keys behind");
    }

    fn key(&mut self, job: &Job<'_>, hash: hashes::Hash) -> Arc<MacKey> {
        let lanes = &mut self.lanes;
        let made = self.keys.prepared(job.session(), |session| {
            Ok::<_, std::convert::Infallible>(MacKey::new(lanes, hash, session.key()))
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

/// The same memory without spans, for others.
fn emptied<'s>(mut spans: Vec<Span<'_>>) -> Vec<Span<'s>> {
    spans.clear();
    spans.into_iter().map(|_| unreachable!("it is empty")).collect()
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
