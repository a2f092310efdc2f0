//! Modules that stand behind the kernel's AF_ALG.

use std::fmt::Write as _;

use evener_driver_kernel::{Module, Standing, Survey};
use serde::Serialize;

#[derive(Serialize)]
pub(super) struct Afalg {
    modules: Vec<KernelModule>,
    /// Where there is none: why.
    #[serde(skip_serializing_if = "Option::is_none")]
    missing: Option<String>,
}

#[derive(Serialize)]
struct KernelModule {
    /// As in `--module`.
    name: String,
    /// What it does, in the kernel's words.
    does: String,
    /// Why it cannot be used.
    #[serde(skip_serializing_if = "Option::is_none")]
    refused: Option<String>,
}

impl Afalg {
    /// Opens each that can be bound.
    pub(super) fn survey() -> Self {
        Self::of(evener_driver_kernel::survey(), opens)
    }

    fn of(survey: Survey, open: impl Fn(&str) -> anyhow::Result<()>) -> Self {
        let module = |Standing { driver, does, refused }: Standing| {
            let name = format!("afalg:{driver}");
            let refused = refused.or_else(|| open(&name).err().map(|error| format!("{error:#}")));
            KernelModule { name, does, refused }
        };
        Self { modules: survey.hardware.into_iter().map(module).collect(), missing: survey.nothing }
    }

    pub(super) fn text(&self) -> String {
        let mut text = String::new();
        for KernelModule { name, does, refused } in &self.modules {
            match refused {
                None => put!(text, "  {name}: {does}"),
                Some(reason) => put!(text, "  {name}: {does}; not used: {reason}"),
            }
        }
        if let Some(reason) = &self.missing {
            put!(text, "  afalg: none: {reason}");
        }
        text
    }
}

/// Opens a module behind the kernel, known answers included, as a run would.
pub(super) fn opens(name: &str) -> anyhow::Result<()> {
    Module::open(&name.parse()?)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_stands_behind_af_alg_is_listed_with_why_it_is_not_used() {
        let standing = |driver: &str, refused: Option<&str>| Standing {
            driver: driver.to_owned(),
            does: "cbc(aes)".to_owned(),
            refused: refused.map(str::to_owned),
        };
        let hardware =
            vec![standing("right", None), standing("lies", None), standing("shut", Some("not admitted"))];
        let afalg = Afalg::of(Survey { hardware, nothing: None }, |name| match name {
            "afalg:lies" => anyhow::bail!("afalg:lies is refused: it lies"),
            "afalg:right" => Ok(()),
            other => unreachable!("{other} cannot be bound"),
        });
        assert_eq!(
            afalg.text(),
            "  afalg:right: cbc(aes)\n  afalg:lies: cbc(aes); not used: afalg:lies is refused: it lies\n  \
             afalg:shut: cbc(aes); not used: not admitted\n"
        );
        let none = Survey { hardware: vec![], nothing: Some("this kernel has no AF_ALG".to_owned()) };
        let none = Afalg::of(none, |_| unreachable!("nothing to open"));
        assert_eq!(none.text(), "  afalg: none: this kernel has no AF_ALG\n");
    }
}
