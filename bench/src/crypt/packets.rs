//! What a request takes of the cores at each module, and how many requests one system call carries: the two figures by which engines of boards differ.

use std::sync::Arc;

use evener::core::driver::{Clock as _, SILENCE_MAX};
use evener::core::known::ask;
use evener::{DriverFactory, SystemClock};
use evener_core::{Algorithm, Direction, Estimator, Job, Nanos, Outcome, Padding, QueuedDriver, Session};
use evener_fd::calls_made;

use zeroize::Zeroizing;

use crate::crypt::experiment::{Sizes, Work};
use crate::crypt::report::{ModulePackets, Packets};

/// How many requests are handed over together: one, and as many as fill an engine's queue of sixteen but one.
const BURSTS: [usize; 2] = [1, 15];
/// Lengths beside a mix.
const USUAL: [usize; 2] = [1_024, 16 << 10];
/// The longest request: what the kernel takes in one piece.
const BYTES_MAX: usize = 64 << 10;
/// Time for one length and burst. Assumed, not measured: 100 ms, a thousand requests of an engine that takes 100 us for each.
const TIME: Nanos = Nanos::from_millis(100);

/// Measures each module's requests of the sizes of cells, or of usual ones where a cell is a mix; what a module does not do, or fails at, is left out.
pub(crate) fn of_modules(
    work: &Work,
    driver_factory: &dyn DriverFactory,
    learned: &Estimator,
) -> Vec<ModulePackets> {
    let sizes = match &work.sizes {
        Sizes::Each(sizes) => sizes,
        Sizes::LogNormal | Sizes::Uniform => &USUAL[..],
    };
    let mut lengths: Vec<usize> = sizes.iter().map(|&bytes| work.algorithm.fitting(bytes)).collect();
    lengths.retain(|&bytes| bytes <= BYTES_MAX);
    lengths.dedup();
    let of_module = |(number, mut driver): (usize, Box<dyn QueuedDriver<'static>>)| {
        let profile = driver.profile().clone();
        let unseen = |bytes| Some(micros(learned.overhead(number)?.at(u64::try_from(bytes).ok()?)));
        let kinds = lengths.iter().flat_map(|&bytes| BURSTS.map(|burst| (bytes, burst)));
        let packets = kinds.filter_map(|(bytes, burst)| {
            let measured = measure(&mut *driver, (work.algorithm, work.direction), bytes, burst)?;
            Some(Packets { unseen_us_per_packet: unseen(bytes), ..measured })
        });
        let packets = packets.collect();
        ModulePackets { packets, module: profile.name, detail: profile.detail, emulated: profile.emulated }
    };
    let modules = driver_factory.modules().into_iter().map(|setup| setup.driver);
    modules.enumerate().map(of_module).collect()
}

fn measure(
    driver: &mut dyn QueuedDriver<'static>,
    (algorithm, direction): (Algorithm, Direction),
    bytes: usize,
    burst: usize,
) -> Option<Packets> {
    // What is decrypted twice has no right tag.
    let has_tag = algorithm.is_aead() && direction == Direction::Decrypt;
    if has_tag || !driver.supports(algorithm, direction) {
        return None;
    }
    let key: Vec<u8> = (0..=254).take(algorithm.key_bytes().unwrap_or(32)).collect();
    let session = Arc::new(Session::new(algorithm, direction, Padding::None, &key).ok()?);
    let mut jobs: Vec<_> = (0..burst).map(|_| Job::owning(Zeroizing::new(vec![0; bytes]))).collect();
    let mut round = || {
        for job in &mut jobs {
            job.arm(Arc::clone(&session), &[7; 16][..algorithm.iv_bytes()], bytes);
        }
        let began = SystemClock.now();
        let all_came = ask(driver, &mut jobs, || SystemClock.now() - began >= SILENCE_MAX);
        let all_done = jobs.iter().all(|job| matches!(job.outcome(), Outcome::Done { .. }));
        (all_came && all_done).then(|| (SystemClock.thread_time() + driver.core_time(), calls_made()))
    };
    // The first one opens the key.
    let (core_before, calls_before) = round()?;
    let (began, mut rounds) = (SystemClock.now(), 0);
    loop {
        let (core, calls) = round()?;
        rounds += 1;
        if SystemClock.now() - began >= TIME {
            let (requests, calls) = (rounds * burst as u64, calls - calls_before);
            return Some(Packets {
                bytes,
                burst,
                requests,
                core_us_per_packet: micros(core - core_before) / float(requests),
                unseen_us_per_packet: None,
                requests_per_system_call: (calls > 0).then(|| float(requests) / float(calls)),
            });
        }
    }
}

fn micros(time: Nanos) -> f64 {
    time.as_secs_f64() * 1e6
}

#[expect(clippy::cast_precision_loss, reason = "counts are far below 2^53")]
const fn float(count: u64) -> f64 {
    count as f64
}

#[cfg(test)]
mod tests {
    use evener_driver_emulated::Emulated;
    use evener_driver_libcrypto::Libcrypto;

    use super::*;

    const CBC: (Algorithm, Direction) = (Algorithm::Aes128Cbc, Direction::Encrypt);

    fn driver(preset: &str) -> Emulated<'static> {
        Emulated::new(preset.parse().unwrap(), Box::new(Libcrypto::new().unwrap()))
    }

    #[test]
    fn the_core_time_of_a_request_is_what_the_module_s_path_takes() {
        // 300 us of a core for each request, and 1 us in which the module works.
        let mut slow = driver("emulated:d=300000+0,h=1000+0,c=1000+0");
        for burst in BURSTS {
            let packets = measure(&mut slow, CBC, 1_024, burst).unwrap();
            assert_eq!((packets.bytes, packets.burst), (1_024, burst));
            assert!(packets.requests >= burst as u64 && packets.requests % burst as u64 == 0);
            // Beside others on the machine a clock runs a little longer, never shorter.
            assert!((300.0..900.0).contains(&packets.core_us_per_packet), "{packets:?}");
        }
    }

    #[test]
    fn what_a_module_does_not_do_is_left_out_and_lengths_fit_the_algorithm() {
        let mut module = driver("emulated:am3358");
        assert!(measure(&mut module, (Algorithm::Aes128Gcm, Direction::Decrypt), 1_024, 1).is_none());
        assert_eq!(Algorithm::Aes128Cbc.fitting(100), 112);
        assert_eq!(Algorithm::Aes128Xts.fitting(1), 16);
        assert_eq!(Algorithm::Sha256.fitting(0), 1);
    }
}
