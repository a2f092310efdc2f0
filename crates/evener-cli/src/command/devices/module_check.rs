//! Modules that the user names: what each would do for a run, or why it cannot be used.

use std::fmt::Write as _;

use evener::core::{Algorithm, Direction, Profile};
use evener_machine::modules::{ModuleSpec, OpenModule};
use serde::Serialize;

/// What became of a module that the user named.
#[derive(Serialize)]
pub(crate) struct ModuleCheck {
    /// As in `--module`.
    name: String,
    /// What stands behind it.
    #[serde(skip_serializing_if = "Option::is_none")]
    detail: Option<String>,
    /// What it does in a run: `AES-128-CBC encrypt`.
    does: Vec<String>,
    /// Why it cannot be used.
    #[serde(skip_serializing_if = "Option::is_none")]
    refused: Option<String>,
}

impl ModuleCheck {
    /// Opens the module as a run would, known answers included.
    pub(crate) fn open(named: &ModuleSpec) -> Self {
        match OpenModule::new(named) {
            Ok(found) => {
                let Profile { name, detail, .. } = found.profile();
                Self { name, detail: Some(detail), does: does(&found), refused: None }
            }
            Err(error) => {
                let (name, refused) = (named.to_string(), Some(format!("{error:#}")));
                Self { name, detail: None, does: Vec::new(), refused }
            }
        }
    }

    pub(crate) fn text(all: &[Self]) -> String {
        let mut text = String::new();
        for Self { name, detail, does, refused } in all {
            let verdict = match refused {
                Some(reason) => format!("refused: {reason}"),
                None => format!("{}; {}", does.join(", "), detail.as_deref().unwrap_or_default()),
            };
            writeln!(text, "  {name}: {verdict}").expect("a String takes everything");
        }
        text
    }
}

fn does(found: &OpenModule) -> Vec<String> {
    let driver = found.driver();
    let both = [Direction::Encrypt, Direction::Decrypt];
    let all = Algorithm::ALL.iter().flat_map(|&algorithm| both.map(|direction| (algorithm, direction)));
    let is_one = |&(algorithm, direction): &(Algorithm, Direction)| {
        (algorithm.is_cipher() || direction == Direction::Encrypt) && driver.supports(algorithm, direction)
    };
    all.filter(is_one).map(|(algorithm, direction)| format!("{algorithm} {direction}")).collect()
}
