//! Known answers, checked before the library is used: a processor, a build or a patch of the library that
//! computes something else loses the algorithm, and the user loses no data. The system's library, which stays mapped, is
//! checked once in a process; the verdict holds for every thread.

use std::ffi::CStr;
use std::sync::{Arc, Mutex, PoisonError};

use evener_core::known::KNOWN;
use evener_core::{Algorithm, Direction, InlineDriver as _};

use super::{Multibuffer, is_offered};

/// Jobs in a burst: one more than lanes, so that full lanes and a rest are both checked.
const WIDTH: usize = 17;

/// What gives a wrong answer.
pub(crate) type Wrong = Arc<[(Algorithm, Direction)]>;

/// What gives a wrong answer of the library that the system has under `name`: found out by the first driver that needs to
/// know, while the others wait. The check takes some 0.5 ms.
pub(crate) fn wrong_answers_of(name: &'static CStr, driver: &mut Multibuffer) -> Wrong {
    static KNOWN: Mutex<Vec<(&CStr, Wrong)>> = Mutex::new(Vec::new());
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((_, wrong)) = known.iter().find(|(checked, _)| *checked == name) {
        return Arc::clone(wrong);
    }
    let wrong = wrong_answers(driver);
    known.push((name, Arc::clone(&wrong)));
    wrong
}

/// Asks.
pub(crate) fn wrong_answers(driver: &mut Multibuffer) -> Wrong {
    let both = [Direction::Encrypt, Direction::Decrypt];
    let questions = KNOWN.iter().flat_map(|known| both.map(|direction| (known, direction)));
    let offered = questions.filter(|(known, direction)| is_offered(known.algorithm, *direction));
    let wrong =
        offered.filter(|(known, direction)| !known.is_right(*direction, WIDTH, |jobs| driver.run(jobs)));
    wrong.map(|(known, direction)| (known.algorithm, direction)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::driver::offered;
    use evener_core::known::Known;

    #[test]
    fn everything_on_offer_is_asked_and_this_machine_answers_right() {
        assert!(offered().all(|(algorithm, _)| KNOWN.iter().any(|known| known.algorithm == algorithm)));
        match Multibuffer::load() {
            Ok(driver) => assert_eq!(driver.wrong_answers(), []),
            Err(unavailable) => println!("skipped: {unavailable}"),
        }
    }

    #[test]
    fn the_system_s_library_is_asked_once_by_all_threads_together() {
        let load = || Multibuffer::load().map(|driver| Arc::clone(&driver.wrong));
        let Ok(first) = load() else {
            println!("skipped: no library");
            return;
        };
        let others: Vec<_> = (0..4).map(|_| std::thread::spawn(load)).collect();
        assert!(others.into_iter().all(|other| Arc::ptr_eq(&first, &other.join().unwrap().unwrap())));
        // Another answer stands elsewhere, so that the same place means the same answer.
        let mut driver = Multibuffer::load().unwrap();
        assert!(!Arc::ptr_eq(&first, &wrong_answers(&mut driver)));
    }

    #[test]
    fn a_wrong_answer_is_noticed() {
        let Ok(mut driver) = Multibuffer::load() else {
            println!("skipped: no library");
            return;
        };
        let changed = |known: &Known| {
            let digits = if known.algorithm.is_cipher() { known.sealed } else { known.tag };
            let (front, last) = digits.split_at(digits.len() - 1);
            String::leak(format!("{front}{}", if last == "0" { "1" } else { "0" }))
        };
        for known in KNOWN.iter().filter(|known| is_offered(known.algorithm, Direction::Encrypt)) {
            let changed: &'static str = changed(known);
            let wrong = match known.algorithm.is_cipher() {
                true => Known { sealed: changed, ..*known },
                false => Known { tag: changed, ..*known },
            };
            assert!(
                known.is_right(Direction::Encrypt, WIDTH, |jobs| driver.run(jobs)),
                "{}",
                known.algorithm
            );
            assert!(
                !wrong.is_right(Direction::Encrypt, WIDTH, |jobs| driver.run(jobs)),
                "{}",
                known.algorithm
            );
        }
    }
}
