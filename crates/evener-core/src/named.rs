//! Types whose values have names: variants and names stand in one table ([`named!`](crate::named)); where people write the names, `names!` shows and finds
//! values by them and says of a name that none has which there are.

/// Whether two names are the same but for the case of letters, compared from their ends, where names of ciphers differ soonest: a program that starts asks
/// this of all that is offered. A loop, which a compiler that saves space leaves as it stands.
pub(crate) const fn is_same_name(one: &str, other: &str) -> bool {
    let (one, other, mut left) = (one.as_bytes(), other.as_bytes(), one.len());
    if other.len() != left {
        return false;
    }
    while left > 0 {
        left -= 1;
        if !one[left].eq_ignore_ascii_case(&other[left]) {
            return false;
        }
    }
    true
}

/// Writes an enum from a table of its variants and their names, `Variant = "name",`, with `ALL`, all variants in the order of the table, and
/// `name`. Discriminants count from 0.
#[macro_export]
macro_rules! named {
    ($(#[$about:meta])* $visible:vis enum $type:ident { $($(#[$doc:meta])* $variant:ident = $name:literal,)+ }) => {
        $(#[$about])*
        $visible enum $type {
            $($(#[$doc])* $variant,)+
        }

        impl $type {
            /// All of them, in the order of their table.
            $visible const ALL: [Self; [$($name),+].len()] = [$(Self::$variant),+];

            /// Its name, as results and options have it.
            #[must_use]
            $visible const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)+
                }
            }
        }
    };
}

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

#[cfg(test)]
mod tests {
    crate::named! {
        /// What a test takes.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        enum Fruit {
            Apple = "apple",
            Fig = "dried fig",
        }
    }

    #[test]
    fn a_table_of_names_makes_the_variants_in_its_order_counted_from_0_each_with_its_name() {
        assert_eq!(Fruit::ALL, [Fruit::Apple, Fruit::Fig]);
        assert_eq!(Fruit::ALL.map(|fruit| fruit as usize), [0, 1]);
        assert_eq!(Fruit::ALL.map(Fruit::name), ["apple", "dried fig"]);
    }
}
