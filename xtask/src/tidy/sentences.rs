//! Each public item begins its documentation with a sentence.

use syn::visit::{self, Visit};
use syn::{Attribute, Expr, ExprLit, Lit, Meta, Visibility};

use super::Finding;
use crate::tree::{Package, TextFile};

/// Findings for public items of libraries whose documentation is missing or begins with no sentence.
pub(super) fn check(packages: &[Package], files: &[TextFile]) -> Vec<Finding> {
    let libraries =
        packages.iter().filter(|package| package.roots.iter().any(|root| root.ends_with("/lib.rs")));
    libraries.flat_map(|package| check_package(package, files)).collect()
}

fn check_package(package: &Package, files: &[TextFile]) -> Vec<Finding> {
    let sources = format!("{}/src/", package.folder);
    let own = files.iter().filter(|file| file.path.starts_with(&sources) && file.path.ends_with(".rs"));
    own.filter(|file| !file.path.contains("/bin/")).flat_map(check_file).collect()
}

fn check_file(file: &TextFile) -> Vec<Finding> {
    // Another check says that it is no Rust.
    let Ok(syntax) = syn::parse_file(&file.text) else { return Vec::new() };
    let mut search = Search { file, found: Vec::new() };
    search.visit_file(&syntax);
    search.found
}

struct Search<'f> {
    file: &'f TextFile,
    found: Vec<Finding>,
}

impl Search<'_> {
    fn item(&mut self, visibility: &Visibility, attributes: &[Attribute], name: &syn::Ident) {
        if !matches!(visibility, Visibility::Public(_)) || begins_with_a_sentence(attributes) {
            return;
        }
        let line = name.span().start().line;
        let message = format!("`{name}` is public: its documentation begins with a sentence");
        self.found.push(Finding::new(&self.file.path, line, message));
    }
}

impl<'ast> Visit<'ast> for Search<'_> {
    fn visit_item_struct(&mut self, it: &'ast syn::ItemStruct) {
        self.item(&it.vis, &it.attrs, &it.ident);
        visit::visit_item_struct(self, it);
    }

    fn visit_item_enum(&mut self, it: &'ast syn::ItemEnum) {
        self.item(&it.vis, &it.attrs, &it.ident);
    }

    fn visit_item_trait(&mut self, it: &'ast syn::ItemTrait) {
        self.item(&it.vis, &it.attrs, &it.ident);
    }

    fn visit_item_fn(&mut self, it: &'ast syn::ItemFn) {
        self.item(&it.vis, &it.attrs, &it.sig.ident);
    }

    fn visit_impl_item_fn(&mut self, it: &'ast syn::ImplItemFn) {
        self.item(&it.vis, &it.attrs, &it.sig.ident);
    }

    fn visit_item_mod(&mut self, it: &'ast syn::ItemMod) {
        let is_for_tests = it.attrs.iter().any(|attribute| matches!(&attribute.meta, Meta::List(_)));
        if !is_for_tests {
            visit::visit_item_mod(self, it);
        }
    }
}

/// Whether the first paragraph of the documentation ends as a sentence does; what documents itself otherwise is `#[doc(hidden)]`.
fn begins_with_a_sentence(attributes: &[Attribute]) -> bool {
    let lines: Vec<String> = attributes.iter().filter_map(line_of).collect();
    let first = lines.iter().map(|line| line.trim()).take_while(|line| !line.is_empty());
    let first: Vec<&str> = first.collect();
    let is_hidden = attributes.iter().any(|attribute| {
        matches!(&attribute.meta, Meta::List(list) if list.path.is_ident("doc") && list.tokens.to_string() == "hidden")
    });
    is_hidden || first.last().is_some_and(|last| last.ends_with(['.', '!', '?', ':']))
}

fn line_of(attribute: &Attribute) -> Option<String> {
    let Meta::NameValue(meta) = &attribute.meta else { return None };
    let Expr::Lit(ExprLit { lit: Lit::Str(text), .. }) = &meta.value else { return None };
    meta.path.is_ident("doc").then(|| text.value())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found_in(text: &str) -> Vec<String> {
        let file = TextFile { path: "c/src/lib.rs".to_owned(), text: text.to_owned() };
        check_file(&file).iter().map(Finding::to_string).collect()
    }

    #[test]
    fn a_public_item_without_a_first_sentence_is_found_with_its_line() {
        let found = found_in(
            "/// Says what it is.\npub struct A;\n\npub struct B;\n/// no sentence\npub fn c() {}\n",
        );
        assert!(found.len() == 2 && found[0].starts_with("c/src/lib.rs:4: `B`"), "{found:?}");
        assert!(found[1].starts_with("c/src/lib.rs:6: `c`"), "{found:?}");
    }

    #[test]
    fn what_is_not_public_or_for_tests_says_what_it_likes() {
        assert!(
            found_in("struct A;\npub(crate) fn b() {}\n#[cfg(test)]\nmod tests { pub fn c() {} }").is_empty()
        );
        assert!(found_in("pub struct A;\nimpl A {\n    /// Does it.\n    pub fn b(&self) {}\n}").len() == 1);
    }
}
