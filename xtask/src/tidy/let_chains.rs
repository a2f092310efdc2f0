//! No `if a && let b = c`: the oldest compiler that `Cargo.toml` names (`rust-version`) refuses it, and no lint of a newer one says so.
//!
//! Goes when `rust-version` is 1.88 or newer.

use syn::spanned::Spanned as _;
use syn::visit::{self, Visit};
use syn::{BinOp, Expr, ExprBinary};

use super::Finding;
use crate::tree::TextFile;

/// Findings for conditions of which a `let` is only one part.
pub(super) fn check(files: &[TextFile]) -> Vec<Finding> {
    files.iter().filter(|file| file.path.ends_with(".rs")).flat_map(check_file).collect()
}

fn check_file(file: &TextFile) -> Vec<Finding> {
    let mut chains = Chains::default();
    // What is no Rust another check finds.
    syn::parse_file(&file.text).iter().for_each(|syntax| chains.visit_file(syntax));
    let message = "a `let` beside `&&` needs Rust 1.88: nest it, or use `is_some_and`";
    chains.lines.into_iter().map(|line| Finding::new(&file.path, line, message)).collect()
}

/// Where they stand.
#[derive(Default)]
struct Chains {
    lines: Vec<usize>,
}

impl<'ast> Visit<'ast> for Chains {
    fn visit_expr_binary(&mut self, it: &'ast ExprBinary) {
        let has_let = [&it.left, &it.right].iter().any(|side| matches!(***side, Expr::Let(_)));
        if has_let && matches!(it.op, BinOp::And(_)) {
            self.lines.push(it.op.span().start().line);
        }
        visit::visit_expr_binary(self, it);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_let_beside_another_condition_is_found_and_one_by_itself_is_not() {
        let text = "fn a() {\n    if let Some(_) = b {}\n    if c\n        && let Some(_) = d {}\n    while let Some(_) = e && f {}\n}\n";
        let file = TextFile { path: "c/src/lib.rs".to_owned(), text: text.to_owned() };
        let lines: Vec<usize> = check_file(&file).iter().map(|finding| finding.line).collect();
        assert_eq!(lines, [4, 5]);
    }
}
