//! Where lanes come from: kernels of our own, or libipsec-mb where this build or this processor has none.
//!
//! Path: [`LaneSource::find`], while a provider opens its ways -> [`LaneSource::driver`], when there are requests for lanes: known answers are asked for, the first time in
//! a process -> what was found and answers wrongly is out of service, as lanes whose sample differs (`check.rs`).

use std::sync::{PoisonError, RwLock};

use evener::counts_file::Statistics;
use evener::lanes;
use evener_core::InlineDriver;
use evener_driver_lanes::Lanes;
use evener_driver_multibuffer::{Multibuffer, Unavailable};

use super::check;

/// Makes drivers.
#[derive(Clone, Copy)]
pub(crate) struct LaneSource {
    maker: Maker,
    /// Where it is shown that lanes are out of service.
    statistics: Option<&'static Statistics>,
}

#[derive(Clone, Copy)]
enum Maker {
    Own,
    Library,
    /// A test's.
    Other(fn() -> Option<Box<dyn InlineDriver>>),
}

static OF_OTHERS: RwLock<Option<Maker>> = RwLock::new(None);

/// Makes providers that are loaded from now on take drivers of lanes from `maker`; where that gives nothing, they are lanes that answered wrongly. For
/// tests that link the provider in.
pub fn run_lanes_by(maker: fn() -> Option<Box<dyn InlineDriver>>) {
    *OF_OTHERS.write().unwrap_or_else(PoisonError::into_inner) = Some(Maker::Other(maker));
}

impl LaneSource {
    /// Looks for lanes. A library is opened here: it may be the last moment at which it can be.
    ///
    /// # Errors
    ///
    /// Why there are none, for the administrator.
    pub(crate) fn find(statistics: Option<&'static Statistics>) -> Result<Self, String> {
        let maker = match *OF_OTHERS.read().unwrap_or_else(PoisonError::into_inner) {
            Some(other) => other,
            None if Lanes::are_there() => Maker::Own,
            None => {
                Multibuffer::find()
                    .map_err(|why| format!("there are no kernels for this processor, and {why}"))?;
                Maker::Library
            }
        };
        Ok(Self { maker, statistics })
    }

    /// A driver, which belongs to one thread at a time.
    pub(in crate::cipher) fn driver(self) -> Option<Box<dyn InlineDriver>> {
        self.made().unwrap_or_else(|AnsweredWrong| {
            // Once, however many drivers ask.
            if lanes::are_in_service() {
                check::take_out_of_service(self.statistics);
            }
            None
        })
    }

    /// Nothing where memory is short.
    fn made(self) -> Result<Option<Box<dyn InlineDriver>>, AnsweredWrong> {
        match self.maker {
            Maker::Own => Ok(Some(Box::new(Lanes::new().ok_or(AnsweredWrong)?))),
            Maker::Other(maker) => maker().map(Some).ok_or(AnsweredWrong),
            Maker::Library => match Multibuffer::load() {
                Ok(library) => Ok(Some(Box::new(library))),
                Err(Unavailable::SelfTest { .. }) => Err(AnsweredWrong),
                Err(_) => Ok(None),
            },
        }
    }
}

struct AnsweredWrong;
