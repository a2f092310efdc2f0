//! Crypto engines that the machine has and that no program reaches.

use super::Finding;
use crate::device_paths::{DevicePath, Obstacle};

/// One for each cause: an engine has many drivers, which one cause shuts together. None is for certain in the way, for a program may do without.
pub(super) fn findings(paths: &[DevicePath]) -> Vec<Finding> {
    let mut causes: Vec<(&Obstacle, Vec<&str>)> = Vec::new();
    for path in paths.iter().filter(|path| path.has_device) {
        let Some(obstacle) = &path.obstacle else { continue };
        match causes.iter_mut().find(|(known, _)| *known == obstacle) {
            Some((_, names)) => names.push(&path.name),
            None => causes.push((obstacle, vec![&path.name])),
        }
    }
    // The way as a whole is no engine where those behind it are named.
    let named = |(obstacle, names): (&Obstacle, Vec<&str>)| {
        let engines: Vec<&str> =
            names.iter().copied().filter(|name| names.len() == 1 || *name != "afalg").collect();
        let fact = format!("{} cannot be used: {}", engines.join(", "), obstacle.fact);
        Finding { certain: false, ..Finding::new("engine-shut", fact, obstacle.cure.clone()) }
    };
    causes.into_iter().map(named).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device_paths::Kind;

    fn path(name: &str, has_device: bool, fact: Option<&str>) -> DevicePath {
        let obstacle = fact.map(|fact| Obstacle {
            kind: Kind::KernelVersion,
            fact: fact.to_owned(),
            cure: format!("cure of {fact}"),
        });
        DevicePath { name: name.to_owned(), what: None, has_device, obstacle }
    }

    #[test]
    fn drivers_that_one_cause_shuts_are_one_finding_and_what_is_not_there_is_none() {
        let paths = [
            path("afalg", true, Some("old")),
            path("afalg:cbc-aes-omap", true, Some("old")),
            path("afalg:ctr-aes-omap", true, Some("old")),
            path("devcrypto", false, Some("no node")),
            path("virtio:0000:00:10.0", true, None),
            path("caam", true, Some("no module")),
        ];
        let found = findings(&paths);
        let facts: Vec<&str> = found.iter().map(|finding| finding.fact.as_str()).collect();
        assert_eq!(
            facts,
            ["afalg:cbc-aes-omap, afalg:ctr-aes-omap cannot be used: old", "caam cannot be used: no module"]
        );
        assert!(found.iter().all(|finding| !finding.certain && finding.cure.starts_with("cure of ")));
        assert!(findings(&[path("afalg", false, Some("none"))]).is_empty());
    }
}
