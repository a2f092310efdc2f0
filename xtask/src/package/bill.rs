//! The bill of materials of a package: every crate that its programs are built from, in SPDX 2.3 as JSON.
//!
//! Steps: `cargo metadata` for the target -> crates that are reached from ours by other ways than tests and build scripts -> one entry each,
//! with licence, place and the sum of Cargo.lock. It holds no time of its own but that of the commit, so that it is the same wherever it is made.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use serde_json::{Value, json};

use crate::programs::answer;
use crate::tree::{cargo, root};

/// Packages of ours that are in the package, each a program or a library.
const OURS: [&str; 4] = ["evener-cli", "evener-objects", "evener-provider", "evener-c"];

/// The bill for `triple`; `created` as `2026-11-29T12:00:00Z`.
pub(super) fn of(triple: &str, architecture: &str, created: &str) -> Result<String, String> {
    let mut metadata = cargo();
    metadata.args(["metadata", "--format-version", "1", "--locked", "--filter-platform", triple]);
    let known: Value = serde_json::from_str(&answer(metadata)?).map_err(|error| error.to_string())?;
    let lock = root().join("Cargo.lock");
    let lock = fs::read_to_string(&lock).map_err(|error| format!("{}: {error}", lock.display()))?;
    let bill = bill(&known, &sums(&lock), &Facts { architecture, created })?;
    Ok(format!("{bill:#}\n"))
}

struct Facts<'a> {
    architecture: &'a str,
    created: &'a str,
}

fn bill(
    known: &Value,
    sums: &BTreeMap<(String, String), String>,
    facts: &Facts<'_>,
) -> Result<Value, String> {
    let packages = known["packages"].as_array().ok_or("cargo metadata lists no packages")?;
    let reached = reached(known)?;
    let mut entries = Vec::new();
    let mut relations = vec![json!({
        "spdxElementId": "SPDXRef-DOCUMENT", "relationshipType": "DESCRIBES", "relatedSpdxElement": "SPDXRef-evener"
    })];
    let version = env!("CARGO_PKG_VERSION");
    entries.push(json!({
        "SPDXID": "SPDXRef-evener", "name": "evener", "versionInfo": version, "downloadLocation": "NOASSERTION",
        "filesAnalyzed": false, "licenseDeclared": "Apache-2.0 OR MIT", "licenseConcluded": "NOASSERTION",
        "copyrightText": "NOASSERTION"
    }));
    for package in
        packages.iter().filter(|package| package["id"].as_str().is_some_and(|id| reached.contains(id)))
    {
        let text = |name: &str| package[name].as_str().unwrap_or_default().to_owned();
        let (name, version) = (text("name"), text("version"));
        let id = format!("SPDXRef-crate-{}", format!("{name}-{version}").replace(['_', '+'], "-"));
        let sum = sums.get(&(name.clone(), version.clone()));
        let place = match sum {
            Some(_) => format!("https://crates.io/api/v1/crates/{name}/{version}/download"),
            None => "NOASSERTION".to_owned(),
        };
        let mut entry = json!({
            "SPDXID": id, "name": name, "versionInfo": version, "downloadLocation": place, "filesAnalyzed": false,
            "licenseDeclared": licence(&text("license")), "licenseConcluded": "NOASSERTION", "copyrightText": "NOASSERTION"
        });
        if let Some(sum) = sum {
            entry["checksums"] = json!([{ "algorithm": "SHA256", "checksumValue": sum }]);
            entry["externalRefs"] = json!([{
                "referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl",
                "referenceLocator": format!("pkg:cargo/{name}@{version}")
            }]);
        }
        entries.push(entry);
        relations.push(json!({
            "spdxElementId": "SPDXRef-evener", "relationshipType": "STATIC_LINK", "relatedSpdxElement": id
        }));
    }
    Ok(json!({
        "spdxVersion": "SPDX-2.3", "dataLicense": "CC0-1.0", "SPDXID": "SPDXRef-DOCUMENT",
        "name": format!("evener-{version}-{}", facts.architecture),
        "documentNamespace": format!("https://spdx.org/spdxdocs/evener-{version}-{}-{}", facts.architecture, facts.created),
        "creationInfo": { "created": facts.created, "creators": ["Tool: cargo-xtask-deb"] },
        "packages": entries, "relationships": relations
    }))
}

/// A licence as SPDX writes it; older crates have a slash for OR.
fn licence(text: &str) -> String {
    if text.is_empty() { "NOASSERTION".to_owned() } else { text.replace('/', " OR ").replace("  ", " ") }
}

/// Identities of packages that [`OURS`] are linked from.
fn reached(known: &Value) -> Result<BTreeSet<&str>, String> {
    let list = |value: &'_ Value| value.as_array().cloned().unwrap_or_default();
    let nodes = known["resolve"]["nodes"].as_array().ok_or("cargo metadata resolves nothing")?;
    let by_id: BTreeMap<&str, &Value> =
        nodes.iter().filter_map(|node| Some((node["id"].as_str()?, node))).collect();
    let packages = known["packages"].as_array().into_iter().flatten();
    let is_ours = |package: &&Value| package["name"].as_str().is_some_and(|name| OURS.contains(&name));
    let mut open: Vec<&str> = packages.filter(is_ours).filter_map(|package| package["id"].as_str()).collect();
    let mut reached = BTreeSet::new();
    while let Some(id) = open.pop() {
        if !reached.insert(id) {
            continue;
        }
        let dependencies = by_id.get(id).and_then(|node| node["deps"].as_array()).into_iter().flatten();
        let is_linked =
            |dependency: &&Value| list(&dependency["dep_kinds"]).iter().any(|kind| kind["kind"].is_null());
        open.extend(dependencies.filter(is_linked).filter_map(|dependency| dependency["pkg"].as_str()));
    }
    Ok(reached)
}

/// Sums by name and version, of Cargo.lock.
fn sums(lock: &str) -> BTreeMap<(String, String), String> {
    let value = |part: &str, name: &str| {
        let line = part.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(" = \""));
        line.and_then(|line| line.strip_suffix('"')).map(str::to_owned)
    };
    let parts = lock.split("[[package]]").skip(1);
    parts
        .filter_map(|part| Some(((value(part, "name")?, value(part, "version")?), value(part, "checksum")?)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_linked_is_in_the_bill_and_what_only_tests_or_builds_need_is_not() {
        let dependency = |id: &str, kind: Value| json!({ "pkg": id, "dep_kinds": [{ "kind": kind }] });
        let package =
            |name: &str| json!({ "id": name, "name": name, "version": "1.0.0", "license": "MIT/Apache-2.0" });
        let known = json!({
            "packages": [package("evener-cli"), package("linked"), package("below"), package("tests"), package("alone")],
            "resolve": { "nodes": [
                { "id": "evener-cli", "deps": [
                    dependency("linked", Value::Null), dependency("tests", json!("dev")), dependency("alone", json!("build"))
                ] },
                { "id": "linked", "deps": [dependency("below", Value::Null)] },
                { "id": "below", "deps": [] }, { "id": "tests", "deps": [] }, { "id": "alone", "deps": [] }
            ] }
        });
        let lock = "[[package]]\nname = \"linked\"\nversion = \"1.0.0\"\nchecksum = \"abc\"\n\n[[package]]\nname = \"evener-cli\"\nversion = \"1.0.0\"\n";
        let facts = Facts { architecture: "armhf", created: "2026-01-01T00:00:00Z" };
        let bill = bill(&known, &sums(lock), &facts).unwrap();
        let names: Vec<_> = bill["packages"]
            .as_array()
            .unwrap()
            .iter()
            .map(|entry| entry["name"].as_str().unwrap())
            .collect();
        assert_eq!(names, ["evener", "evener-cli", "linked", "below"]);
        assert_eq!(bill["packages"][2]["checksums"][0]["checksumValue"], "abc");
        assert_eq!(bill["packages"][2]["licenseDeclared"], "MIT OR Apache-2.0");
        assert_eq!(bill["packages"][1]["downloadLocation"], "NOASSERTION");
        assert_eq!(bill["relationships"].as_array().unwrap().len(), 4);
    }
}
