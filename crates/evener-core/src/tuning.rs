//! Tuning: the numbers of a policy in one struct, each with its unit, the range that is permitted, and where it is from.
//!
//! A policy writes its struct by `tuning!` and reads the constant `TUNING`, a value and no pointer: the compiler puts
//! each number where it is used. In tests the struct says which of its numbers leaves its range, and each as a row of the table in
//! `docs/design/adaptive.md`.

/// Writes a struct of numbers and its constant `TUNING`:
/// `[rule] name: type = value, least..=most, "unit", "source";`. The rule is that of `docs/design/adaptive.md`.
#[macro_export]
macro_rules! tuning {
    ($(#[$about:meta])* $visible:vis struct $name:ident;
    $($(#[$doc:meta])* [$rule:literal] $field:ident: $type:ty = $value:expr, $least:expr, $most:expr, $unit:literal, $source:literal;)*) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, PartialEq)]
        $visible struct $name {
            $(
                $(#[$doc])*
                #[doc = concat!("\n\n", $rule, ", in ", $unit, ". Source: ", $source)]
                pub $field: $type,
            )*
        }

        /// The numbers that are in force.
        $visible const TUNING: $name = $name { $($field: $value),* };

        #[cfg(test)]
        impl $name {
            /// Names of the numbers that are not within their ranges.
            fn out_of_range(&self) -> Vec<&'static str> {
                let mut out = Vec::new();
                $(
                    let (least, most): ($type, $type) = ($least, $most);
                    if !(least..=most).contains(&self.$field) {
                        out.push(stringify!($field));
                    }
                )*
                out
            }

            /// Each number as a row of the documents' table.
            fn rows(&self) -> Vec<String> {
                let row = |rule: &str, name: &str, unit: &str, [value, least, most]: [String; 3]| {
                    format!("| {rule} | `{name}` | {value} | {least} to {most} | {unit} |")
                };
                let mut rows = Vec::new();
                $(
                    let (least, most): ($type, $type) = ($least, $most);
                    let numbers = [self.$field, least, most].map(|number| number.to_string());
                    rows.push(row($rule, stringify!($field), $unit, numbers));
                )*
                rows
            }
        }

        #[test]
        fn every_number_lies_within_its_range() {
            assert_eq!(TUNING.out_of_range(), [""; 0]);
        }

        #[test]
        fn every_number_stands_in_the_documents_with_its_rule_and_range() {
            let document = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/design/adaptive.md"));
            let missing: Vec<String> =
                TUNING.rows().into_iter().filter(|row| !document.lines().any(|line| line == row)).collect();
            assert!(missing.is_empty(), "not in docs/design/adaptive.md:\n{}", missing.join("\n"));
        }
    };
}
