//! Dependencies come from crates.io and nowhere else; a mirror belongs into the configuration of a machine.

use super::Finding;
use crate::tree::TextFile;

const CRATES_IO: &str = "source = \"registry+https://github.com/rust-lang/crates.io-index\"";

/// Findings for packages in `Cargo.lock` with another source, and for mirrors in `.cargo/config.toml`.
pub(super) fn check(files: &[TextFile]) -> Vec<Finding> {
    files.iter().flat_map(check_file).collect()
}

fn check_file(file: &TextFile) -> Vec<Finding> {
    let stray: fn(&str) -> bool = match file.path.as_str() {
        "Cargo.lock" => |line| line.starts_with("source = ") && line != CRATES_IO,
        ".cargo/config.toml" => |line| line.starts_with("[source") || line.starts_with("[registr"),
        _ => return Vec::new(),
    };
    let lines = file.text.lines().enumerate().filter(|(_, line)| stray(line));
    lines
        .map(|(number, line)| Finding::new(&file.path, number + 1, format!("not crates.io: {line}")))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found_in(path: &str, text: String) -> usize {
        check(&[TextFile { path: path.into(), text }]).len()
    }

    #[test]
    fn a_package_from_elsewhere_is_found() {
        assert_eq!(found_in("Cargo.lock", format!("name = \"a\"\n{CRATES_IO}\n")), 0);
        assert_eq!(found_in("Cargo.lock", "source = \"git+https://example.org/a\"\n".into()), 1);
    }

    #[test]
    fn a_mirror_in_the_configuration_is_found() {
        assert_eq!(found_in(".cargo/config.toml", "[source.crates-io]\nreplace-with = \"near\"\n".into()), 1);
        assert_eq!(found_in(".cargo/config.toml", "[alias]\n".into()), 0);
    }
}
