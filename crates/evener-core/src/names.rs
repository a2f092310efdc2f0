//! Types whose values have names: each is shown by its name and found by it, and of a name that none has is said which there are.

/// For a type with `ALL` and `name`: how it is shown and found, and the error where none has the name.
macro_rules! names {
    ($type:ident, $kind:literal, $unknown:ident) => {
        impl std::fmt::Display for $type {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.name())
            }
        }

        #[doc = concat!("A name that no ", $kind, " has.")]
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub struct $unknown(pub String);

        impl std::fmt::Display for $unknown {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                let known: Vec<&str> = $type::ALL.iter().map(|one| one.name()).collect();
                write!(f, concat!("unknown ", $kind, " {:?}; known are {}"), self.0, known.join(", "))
            }
        }

        impl std::error::Error for $unknown {}

        impl std::str::FromStr for $type {
            type Err = $unknown;

            fn from_str(name: &str) -> Result<Self, Self::Err> {
                let found = Self::ALL.iter().find(|one| one.name() == name);
                found.copied().ok_or_else(|| $unknown(name.to_owned()))
            }
        }
    };
}

pub(crate) use names;
