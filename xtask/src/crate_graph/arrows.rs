//! Which file uses which: each name followed to the file that defines it, through what modules hand on.

use std::collections::{BTreeMap, BTreeSet};

use super::modules::{Crate, Import, Module};

/// A file that uses names of another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Arrow {
    pub(crate) from: String,
    pub(crate) to: String,
    pub(crate) names: BTreeSet<String>,
}

/// All arrows of a crate. A module's to its own descendants are left out: what it is made of is no dependence.
pub(crate) fn arrows(krate: &Crate) -> Vec<Arrow> {
    let mut all: BTreeMap<(String, String), BTreeSet<String>> = BTreeMap::new();
    let parted = parted(krate);
    for (path, module) in &krate.modules {
        let names = uses(krate, path, module).into_iter().chain(calls(module, &parted));
        for (to, name) in names {
            if to.1 != module.file && !is_within(path, &to.0) {
                all.entry((module.file.clone(), to.1)).or_default().insert(name);
            }
        }
    }
    all.into_iter().map(|((from, to), names)| Arrow { from, to, names }).collect()
}

/// A module by its path, with its file.
type Place = (Vec<String>, String);

fn is_within(ancestor: &[String], path: &[String]) -> bool {
    path.len() > ancestor.len() && path.starts_with(ancestor)
}

/// What a module imports and names, with the places where that is defined.
fn uses(krate: &Crate, path: &[String], module: &Module) -> Vec<(Place, String)> {
    let imported = module.imports.iter().map(|import| {
        let mut path = import.path.clone();
        if import.name.is_none() {
            path.push("*".to_owned());
        }
        path
    });
    let named = module.paths.iter().map(|names| through_import(module, names));
    let all = imported.chain(named);
    all.filter_map(|names| krate.find(path, &names)).collect()
}

/// A path that begins with an imported name, written out.
fn through_import(module: &Module, names: &[String]) -> Vec<String> {
    let import = module.imports.iter().find(|import| import.name.as_ref() == names.first());
    import.map_or_else(|| names.to_vec(), |import| [&import.path[..], &names[1..]].concat())
}

impl Crate {
    /// Where the last name of a path that stands in the module `at` is defined; nothing for what is a module, or another crate's.
    fn find(&self, at: &[String], names: &[String]) -> Option<(Place, String)> {
        self.find_within(at, names, DEPTH_MAX)
    }

    fn find_within(&self, at: &[String], names: &[String], depth: usize) -> Option<(Place, String)> {
        let depth = depth.checked_sub(1)?;
        let (mut current, mut rest) = self.start(at, names)?;
        while let Some(name) = rest.first() {
            let module = self.modules.get(&current)?;
            match name.as_str() {
                "super" => {
                    current.pop()?;
                }
                "self" => {}
                name if module.children.contains(name) => current.push(name.to_owned()),
                name => {
                    return self.defined(&current, module, name, depth).map(|place| (place, name.to_owned()));
                }
            }
            rest = &rest[1..];
        }
        None
    }

    /// The module in which a path begins, and what of it is left.
    fn start<'n>(&self, at: &[String], names: &'n [String]) -> Option<(Vec<String>, &'n [String])> {
        let first = names.first()?;
        match first.as_str() {
            "crate" => Some((Vec::new(), &names[1..])),
            "self" => Some((at.to_vec(), &names[1..])),
            "super" => Some((at.split_last()?.1.to_vec(), &names[1..])),
            first if self.modules.get(at)?.children.contains(first) => Some((at.to_vec(), names)),
            _ => None,
        }
    }

    /// Where a name of a module is defined: there, or where the module has it from.
    fn defined(&self, at: &[String], module: &Module, name: &str, depth: usize) -> Option<Place> {
        let current = || Some((at.to_vec(), module.file.clone()));
        if name == "*" || module.defines.contains(name) {
            return current();
        }
        let handed_on = |import: &&Import| import.name.as_deref() == Some(name);
        if let Some(import) = module.imports.iter().find(handed_on) {
            let from = self.find_within(at, &import.path, depth);
            return from.map_or_else(current, |(place, _)| Some(place));
        }
        let globs = module.imports.iter().filter(|import| import.name.is_none() && import.is_handed_on);
        let mut found = globs.filter_map(|import| {
            let path: Vec<String> = import.path.iter().cloned().chain([name.to_owned()]).collect();
            let (place, _) = self.find_within(at, &path, depth)?;
            self.modules.get(&place.0)?.defines.contains(name).then_some(place)
        });
        found.next().or_else(current)
    }
}

/// Names that are handed on more often than that are followed no further.
const DEPTH_MAX: usize = 8;

/// Methods whose `impl` block stands in another file than their type, by their names, as far as no other function of the crate has that,
/// and none of the standard library's that is called everywhere.
fn parted(krate: &Crate) -> BTreeMap<String, Place> {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for (_, functions) in krate.modules.values().flat_map(|module| &module.impls) {
        functions.iter().for_each(|name| *counts.entry(name).or_default() += 1);
    }
    let mut parted = BTreeMap::new();
    for (path, module) in &krate.modules {
        let elsewhere = module.impls.iter().filter(|(of, _)| !module.defines.contains(of));
        let functions = elsewhere.flat_map(|(_, functions)| functions);
        let is_known =
            |name: &&String| counts.get(name.as_str()) == Some(&1) && !OF_STD.contains(&name.as_str());
        for name in functions.filter(is_known) {
            parted.insert(name.clone(), (path.clone(), module.file.clone()));
        }
    }
    parted
}

const OF_STD: &[&str] = &[
    "all", "any", "as_mut", "as_ref", "clear", "clone", "cmp", "collect", "contains", "copied", "count",
    "drain", "extend", "filter", "find", "first", "flush", "fold", "get", "get_mut", "insert", "into",
    "is_empty", "iter", "join", "last", "len", "lock", "map", "max", "min", "next", "ok", "parse", "pop",
    "position", "push", "read", "remove", "replace", "retain", "run", "send", "set", "sort", "spawn",
    "split", "store", "swap", "take", "wait", "write", "zip",
];

/// Such methods that a module calls.
fn calls(module: &Module, parted: &BTreeMap<String, Place>) -> Vec<(Place, String)> {
    let called = module.calls.iter();
    let named = module.paths.iter().filter_map(|path| path.last());
    called
        .chain(named)
        .filter_map(|name| parted.get(name).map(|place| (place.clone(), format!(".{name}()"))))
        .collect()
}
