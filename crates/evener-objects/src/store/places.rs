//! Places as users name them and as a plan has them: what a URI says, and whether one place lies in another.
//!
//! Names of one place are many: schemes have other names, bytes are written as `%61`, and links lead to directories. So what is compared is the bucket
//! and the prefix that the client works with, and the directory that a path leads to.

use std::path::{Component, Path, PathBuf};

use object_store::ObjectStoreScheme;
use url::Url;

use crate::outcome::Failure;

/// Places as they stand in a plan, which is read elsewhere: as URIs.
///
/// # Errors
///
/// Where one lies in the other, for then outputs would be inputs.
pub(crate) fn places(source: &str, destination: &str) -> Result<[String; 2], Failure> {
    let places = [absolute(source)?, absolute(destination)?];
    let [from, to] = [Whereabouts::of(&places[0])?, Whereabouts::of(&places[1])?];
    if from.overlaps(&to) {
        return Err(Failure::never(format_args!("{} and {} lie in each other", places[0], places[1])));
    }
    Ok(places)
}

/// Whether two pairs of places are the same ones, by whatever names.
pub(crate) fn are_same(ones: [&str; 2], others: [&str; 2]) -> bool {
    let is_same = |one: &str, other: &str| {
        let places = Whereabouts::of(one).and_then(|one| Ok((one, Whereabouts::of(other)?)));
        one == other || places.is_ok_and(|(one, other)| one.is_same(&other))
    };
    is_same(ones[0], others[0]) && is_same(ones[1], others[1])
}

fn absolute(place: &str) -> Result<String, Failure> {
    match place.strip_prefix("file://") {
        Some(path) if !path.starts_with('/') => {
            let text = "a directory is file:///DIR, with three slashes, or is named without file://";
            return Err(Failure::never(format_args!("{}: {text}", shown(place))));
        }
        None if place.contains("://") => return Ok(place.to_owned()),
        _ => {}
    }
    let place = place.strip_prefix("file://").unwrap_or(place);
    let path =
        std::path::absolute(place).map_err(|error| Failure::never(format_args!("{place}: {error}")))?;
    // Without a slash at its end, so that a place has one name in plans.
    let path: PathBuf = path.components().collect();
    let path = path.to_str().ok_or_else(|| Failure::never(format_args!("{place} is no text")))?;
    Ok(format!("file://{path}"))
}

/// A place behind HTTP.
pub(super) struct RemotePlace {
    pub(super) url: Url,
    pub(super) scheme: ObjectStoreScheme,
    pub(super) prefix: object_store::path::Path,
}

impl RemotePlace {
    /// Takes a URI apart.
    ///
    /// # Errors
    ///
    /// Where it is none of a store, or has parts that no store looks at. What may be a credential is not shown.
    pub(super) fn parse(place: &str) -> Result<Self, Failure> {
        const CREDENTIALS: &str = "a place names no user and no password: the environment has credentials";
        if has_colon_and_at(place) {
            return Err(Failure::never(CREDENTIALS));
        }
        let shown = shown(place);
        if place.contains(['?', '#']) {
            return Err(Failure::never(format_args!(
                "{shown}: behind it stands a query or fragment, which no place has; in names ? is written %3F and # %23"
            )));
        }
        let url = Url::parse(place).map_err(|error| Failure::never(format_args!("{shown}: {error}")))?;
        let has_container = matches!(url.scheme(), "az" | "abfs" | "abfss");
        if url.password().is_some() || !(url.username().is_empty() || has_container) {
            return Err(Failure::never(CREDENTIALS));
        }
        // Its own words have the whole URI.
        let parsed = ObjectStoreScheme::parse(&url).ok();
        let (scheme, prefix) =
            parsed.ok_or_else(|| Failure::never(format_args!("{shown}: no store has such a place")))?;
        Ok(Self { url, scheme, prefix })
    }

    /// Whether both lie in one bucket, as far as URIs tell.
    fn has_bucket_of(&self, other: &Self) -> bool {
        let [(bucket, account), (others, others_account)] = [self.bucket(), other.bucket()];
        // An account that the environment says may be any.
        let is_one = account.is_none() || others_account.is_none() || account == others_account;
        self.scheme == other.scheme && bucket == others && is_one
    }

    /// Its bucket or container, and the account if the URI has one.
    fn bucket(&self) -> (String, Option<String>) {
        let host = self.url.host_str().unwrap_or_default();
        let first = |labels: &str| labels.split('.').next().unwrap_or_default().to_owned();
        match (self.url.scheme(), self.url.username()) {
            ("https", _) => match host.split_once(".s3.") {
                Some((bucket, _)) => (bucket.to_owned(), None),
                None => {
                    let bucket = self.url.path_segments().and_then(|mut parts| parts.next());
                    let is_azure = self.scheme == ObjectStoreScheme::MicrosoftAzure;
                    (bucket.unwrap_or_default().to_owned(), is_azure.then(|| first(host)))
                }
            },
            (_, "") => (host.to_owned(), None),
            (_, container) => (container.to_owned(), Some(first(host))),
        }
    }
}

/// What a message may have of a place: nothing up to its last `@`, for a password may have any sign in it, and no query or fragment.
fn shown(place: &str) -> String {
    let of_name = |text: &str| text.split(['?', '#']).next().unwrap_or_default().to_owned();
    match place.rsplit_once('@') {
        None => of_name(place),
        // The `@` may be one of a query.
        Some((hidden, _)) if hidden.contains(['?', '#']) => "a place".to_owned(),
        Some((_, behind)) => format!("...@{}", of_name(behind)),
    }
}

/// Whether there is a colon where no bucket has one, and an `@` anywhere behind it: a user and a password, which may have a slash.
fn has_colon_and_at(place: &str) -> bool {
    let Some((scheme, rest)) = place.split_once("://") else { return false };
    let is_web = ["http", "https"].iter().any(|web| web.eq_ignore_ascii_case(scheme));
    let bucket = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let behind = bucket.find(':').map(|at| &rest[at..]);
    !is_web && behind.is_some_and(|behind| behind.contains('@'))
}

/// What of two places can be compared.
enum Whereabouts {
    Directory(PathBuf),
    Remote(RemotePlace),
}

impl Whereabouts {
    fn of(place: &str) -> Result<Self, Failure> {
        match place.strip_prefix("file://") {
            Some(path) => Ok(Self::Directory(real(Path::new(path)))),
            None => RemotePlace::parse(place).map(Self::Remote),
        }
    }

    fn overlaps(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Directory(one), Self::Directory(other)) => {
                one.starts_with(other) || other.starts_with(one)
            }
            (Self::Remote(one), Self::Remote(other)) => {
                let (prefix, others_prefix) = (&one.prefix, &other.prefix);
                let is_below = prefix.prefix_matches(others_prefix) || others_prefix.prefix_matches(prefix);
                one.has_bucket_of(other) && is_below
            }
            _ => false,
        }
    }

    fn is_same(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Directory(one), Self::Directory(other)) => one == other,
            (Self::Remote(one), Self::Remote(other)) => {
                one.has_bucket_of(other) && one.prefix == other.prefix
            }
            _ => false,
        }
    }
}

/// The directory that a path leads to; of what is not there yet, where it would be.
fn real(path: &Path) -> PathBuf {
    let mut real = PathBuf::from("/");
    for component in std::path::absolute(path).as_deref().unwrap_or(path).components() {
        match component {
            Component::ParentDir => _ = real.pop(),
            Component::Normal(own) => {
                let next = real.join(own);
                real = next.canonicalize().unwrap_or(next);
            }
            Component::RootDir | Component::CurDir | Component::Prefix(_) => {}
        }
    }
    real
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use evener_testing::Folder;

    use super::*;

    fn lie_in_each_other(one: &str, other: &str) -> bool {
        [(one, other), (other, one)].map(|(source, destination)| places(source, destination).is_err())
            == [true; 2]
    }

    #[test]
    fn one_place_is_known_by_all_of_its_names() {
        for (one, other) in [
            ("s3://b/run", "s3a://b/run"),
            ("s3://b/run", "s3a://b/run/sealed"),
            ("s3://b/run", "s3://b/%72un/"),
            ("s3://b", "s3://b/run"),
            ("s3://b/run", "https://b.s3.eu-central-1.amazonaws.com/run"),
            ("s3://b/run", "https://s3.eu-central-1.amazonaws.com/b/run/x"),
            ("s3://b/x/../run", "s3://b/run"),
            ("az://c/run", "abfss://c@account.dfs.core.windows.net/run"),
            ("az://c/run", "https://account.blob.core.windows.net/c/run"),
        ] {
            assert!(lie_in_each_other(one, other), "{one} {other}");
        }
        for (one, other) in [
            ("s3://b/run", "s3://b/runs"),
            ("s3://b/run", "s3://c/run"),
            ("s3://b/run", "gs://b/run"),
            ("s3://b/run", "/b/run"),
            ("abfss://c@one.dfs.core.windows.net/run", "abfss://c@two.dfs.core.windows.net/run"),
        ] {
            assert!(places(one, other).is_ok(), "{one} {other}");
        }
    }

    #[test]
    fn a_directory_is_known_by_where_its_names_lead() {
        let folder = Folder::temporary();
        let name = |own: &str| folder.join(own).to_str().unwrap().to_owned();
        std::fs::create_dir_all(folder.join("data/below")).unwrap();
        symlink("data", folder.join("link")).unwrap();
        symlink("../data", folder.join("data/below/up")).unwrap();
        for other in ["link", "link/new", "x/../data", "x/../data/new", "data/below/up/x", "./data//new"] {
            assert!(lie_in_each_other(&name("data"), &name(other)), "{other}");
            let uri = format!("file://{}", name(other));
            assert!(lie_in_each_other(&name("data"), &uri), "{uri}");
        }
        let here = std::env::current_dir().unwrap();
        assert!(lie_in_each_other(here.to_str().unwrap(), "sealed"));
        // A host, or a directory with a slash too few: which one is meant is not guessed.
        for place in ["file://sealed", "file://", "file://localhost/data"] {
            let refused = places(place, "s3://b/run").unwrap_err();
            assert!(refused.text.contains("file:///DIR"), "{refused}");
        }
        for other in ["data2", "new", "link/../new"] {
            assert!(places(&name("data"), &name(other)).is_ok(), "{other}");
        }
    }

    #[test]
    fn places_of_two_plans_are_the_same_by_other_names() {
        let folder = Folder::temporary();
        let name = |own: &str| folder.join(own).to_str().unwrap().to_owned();
        std::fs::create_dir(folder.join("data")).unwrap();
        symlink("data", folder.join("link")).unwrap();
        let to = "s3://b/run";
        let [plain, with_slash] = ["data", "data/"].map(|own| places(&name(own), to).unwrap());
        assert_eq!(plain, with_slash);
        let from = plain[0].as_str();
        for (source, destination) in [
            (format!("file://{}", name("link")), "s3a://b/run/"),
            (format!("file://{}/", name("data")), "s3://b/%72un"),
        ] {
            assert!(are_same([from, to], [&source, destination]), "{source} {destination}");
        }
        let below = format!("{from}/x");
        for others in
            [[&below, to], [from, "s3://b/runs"], [from, "s3://b"], [from, "gs://b/run"], [to, from]]
        {
            assert!(!are_same([from, to], others), "{others:?}");
        }
    }

    #[test]
    fn what_no_store_looks_at_is_refused_and_no_credential_is_shown() {
        for place in [
            "s3://b/run#3secret",
            "az://c/run?sig=secret",
            "s3://user:secret@b/run",
            "s3://secret@b/run",
            "az://c:secret@b/run",
            "az://?secret",
            "s3://AKIA:secret@b/run?x",
            "s3://AKIA:secret@b/run#x",
            "s3://AKIA:secret/cd@b/run",
            "s3://AKIA:12/secret@b/run",
            "s3://AKIA:secret?cd@b/run",
            "s3://AKIA:se/secret@x@b/run",
            "https://AKIA:secret/cd@b.s3.eu-central-1.amazonaws.com/run",
            "az://c/run?sig=x@secret",
            "s3://[secret/x@b/run",
            "ftp://secret/x@b/run",
            "s3://b/secret//x@run",
        ] {
            let failure = places(place, "s3://other/run").unwrap_err();
            assert!(!failure.is_for_again() && !failure.text.contains("secret"), "{failure}");
        }
        let failure = places("s3://AKIA/secret@b/run?x", "s3://other/run").unwrap_err();
        assert!(failure.text.starts_with("...@b/run: behind it stands a query"), "{failure}");
        for place in ["s3://b/run%233", "s3://b/me@home:1/x", "az://c@account.blob.core.windows.net/x"] {
            assert!(places(place, "s3://other/run").is_ok(), "{place}");
        }
    }
}
