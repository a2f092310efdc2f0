//! The modules of a crate, as far as its text says: what each defines, hands on and imports. What is for tests only is left out.

use std::collections::{BTreeMap, BTreeSet};

use syn::visit::{self, Visit};
use syn::{Attribute, Item, UseTree, Visibility};

use crate::tree::TextFile;

/// A crate: a library or a program.
pub(crate) struct Crate {
    /// By path, `[]` for the root.
    pub(crate) modules: BTreeMap<Vec<String>, Module>,
}

/// One module. Several may stand in one file.
#[derive(Default)]
pub(crate) struct Module {
    /// Its file, from the root of the workspace.
    pub(crate) file: String,
    /// Names that it defines.
    pub(crate) defines: BTreeSet<String>,
    pub(crate) children: BTreeSet<String>,
    pub(crate) imports: Vec<Import>,
    /// Paths besides imports.
    pub(crate) paths: Vec<Vec<String>>,
    /// Types that its `impl` blocks without a trait are for, with their functions.
    pub(crate) impls: Vec<(String, Vec<String>)>,
    /// Methods that are called.
    pub(crate) calls: BTreeSet<String>,
}

/// One name of a `use`.
#[derive(Clone, Debug)]
pub(crate) struct Import {
    pub(crate) path: Vec<String>,
    /// What it is called here; none for all of a module.
    pub(crate) name: Option<String>,
    /// Whether others may import it from here.
    pub(crate) is_handed_on: bool,
}

impl Crate {
    /// Reads the crate whose first file is `root`.
    ///
    /// # Errors
    ///
    /// The file that is no Rust.
    pub(crate) fn read(root: &str, files: &[TextFile]) -> Result<Self, String> {
        let mut this = Self { modules: BTreeMap::new() };
        this.read_file(root, Vec::new(), files)?;
        Ok(this)
    }

    fn read_file(&mut self, path: &str, module: Vec<String>, files: &[TextFile]) -> Result<(), String> {
        let Some(file) = files.iter().find(|file| file.path == path) else {
            return Err(format!("{path} is missing"));
        };
        let syntax = syn::parse_file(&file.text).map_err(|error| format!("{path}: {error}"))?;
        self.read_items(path, module, &syntax.items, files)
    }

    fn read_items(
        &mut self,
        file: &str,
        module: Vec<String>,
        items: &[Item],
        files: &[TextFile],
    ) -> Result<(), String> {
        let mut this = Module { file: file.to_owned(), ..Module::default() };
        for item in items.iter().filter(|item| !attributes_of(item).iter().any(is_for_tests)) {
            this.take(item);
            let Item::Mod(child) = item else { continue };
            let name = child.ident.to_string();
            let path: Vec<String> = module.iter().cloned().chain([name.clone()]).collect();
            match &child.content {
                Some((_, items)) => self.read_items(file, path, items, files)?,
                None => {
                    let place = file_of(file, module.is_empty(), &name, files)?;
                    self.read_file(&place, path, files)?;
                }
            }
            this.children.insert(name);
        }
        self.modules.insert(module, this);
        Ok(())
    }
}

impl Module {
    fn take(&mut self, item: &Item) {
        let name = match item {
            Item::Const(it) => Some(it.ident.to_string()),
            Item::Enum(it) => Some(it.ident.to_string()),
            Item::Fn(it) => Some(it.sig.ident.to_string()),
            Item::Macro(it) => it.ident.as_ref().map(ToString::to_string),
            Item::Static(it) => Some(it.ident.to_string()),
            Item::Struct(it) => Some(it.ident.to_string()),
            Item::Trait(it) => Some(it.ident.to_string()),
            Item::Type(it) => Some(it.ident.to_string()),
            Item::Union(it) => Some(it.ident.to_string()),
            _ => None,
        };
        self.defines.extend(name);
        if let Item::Impl(it) = item {
            self.take_impl(it);
        }
        if !matches!(item, Item::Mod(_)) {
            self.visit_item(item);
        }
    }

    fn take_impl(&mut self, it: &syn::ItemImpl) {
        let syn::Type::Path(of) = &*it.self_ty else { return };
        let (None, Some(name)) = (&it.trait_, of.path.segments.last()) else { return };
        let functions = it.items.iter().filter_map(|item| match item {
            syn::ImplItem::Fn(function) => Some(function.sig.ident.to_string()),
            _ => None,
        });
        self.impls.push((name.ident.to_string(), functions.collect()));
    }

    fn import(&mut self, before: &[String], tree: &UseTree, is_handed_on: bool) {
        let with = |name: &syn::Ident| [before, &[name.to_string()]].concat();
        match tree {
            UseTree::Path(part) => self.import(&with(&part.ident), &part.tree, is_handed_on),
            UseTree::Group(group) => {
                group.items.iter().for_each(|tree| self.import(before, tree, is_handed_on));
            }
            UseTree::Glob(_) => self.imports.push(Import { path: before.to_vec(), name: None, is_handed_on }),
            UseTree::Name(last) => self.import_one(before, &last.ident, last.ident.to_string(), is_handed_on),
            UseTree::Rename(last) => {
                self.import_one(before, &last.ident, last.rename.to_string(), is_handed_on);
            }
        }
    }

    fn import_one(&mut self, before: &[String], last: &syn::Ident, name: String, is_handed_on: bool) {
        let (path, name) = match last.to_string() {
            // `use a::{self}` names the module.
            own if own == "self" && !before.is_empty() => {
                let name = if name == "self" { before[before.len() - 1].clone() } else { name };
                (before.to_vec(), name)
            }
            last => ([before, &[last]].concat(), name),
        };
        self.imports.push(Import { path, name: Some(name), is_handed_on });
    }

    /// Paths in what a macro is given: names with two colons between them.
    fn take_tokens(&mut self, tokens: proc_macro2::TokenStream) {
        let text = tokens.to_string();
        let chains = text.split(|c: char| !(c.is_alphanumeric() || matches!(c, '_' | ':' | ' ')));
        for chain in chains {
            let parts: Vec<&str> = chain.split("::").map(str::trim).collect();
            let last_of = |part: &str| part.split(' ').next_back().unwrap_or_default().to_owned();
            let first_of = |part: &str| part.split(' ').next().unwrap_or_default().to_owned();
            let names: Vec<String> = parts
                .iter()
                .enumerate()
                .map(|(at, part)| if at == 0 { last_of(part) } else { first_of(part) })
                .collect();
            if names.len() > 1 {
                self.paths.push(names);
            }
        }
    }
}

impl<'ast> Visit<'ast> for Module {
    fn visit_item_use(&mut self, it: &'ast syn::ItemUse) {
        let is_handed_on = !matches!(it.vis, Visibility::Inherited);
        self.import(&[], &it.tree, is_handed_on);
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        if path.segments.len() > 1 {
            self.paths.push(path.segments.iter().map(|segment| segment.ident.to_string()).collect());
        }
        visit::visit_path(self, path);
    }

    fn visit_expr_method_call(&mut self, call: &'ast syn::ExprMethodCall) {
        self.calls.insert(call.method.to_string());
        visit::visit_expr_method_call(self, call);
    }

    fn visit_macro(&mut self, it: &'ast syn::Macro) {
        self.take_tokens(it.tokens.clone());
        visit::visit_macro(self, it);
    }
}

fn attributes_of(item: &Item) -> &[Attribute] {
    match item {
        Item::Const(it) => &it.attrs,
        Item::Enum(it) => &it.attrs,
        Item::Fn(it) => &it.attrs,
        Item::Impl(it) => &it.attrs,
        Item::Macro(it) => &it.attrs,
        Item::Mod(it) => &it.attrs,
        Item::Static(it) => &it.attrs,
        Item::Struct(it) => &it.attrs,
        Item::Trait(it) => &it.attrs,
        Item::Type(it) => &it.attrs,
        Item::Use(it) => &it.attrs,
        _ => &[],
    }
}

fn is_for_tests(attribute: &Attribute) -> bool {
    let syn::Meta::List(list) = &attribute.meta else { return false };
    list.path.is_ident("cfg") && list.tokens.to_string() == "test"
}

/// The file of a child module, whichever of its names it has. A `#[path]` names another for some systems; the usual one is read.
fn file_of(parent: &str, is_root: bool, name: &str, files: &[TextFile]) -> Result<String, String> {
    let (folder, own) = parent.rsplit_once('/').unwrap_or(("", parent));
    let stem = own.trim_end_matches(".rs");
    let below = if is_root || stem == "mod" { folder.to_owned() } else { format!("{folder}/{stem}") };
    let both = [format!("{below}/{name}.rs"), format!("{below}/{name}/mod.rs")];
    let found = both.iter().find(|path| files.iter().any(|file| file.path == **path));
    found.cloned().ok_or_else(|| format!("{parent}: no file for the module `{name}`"))
}
