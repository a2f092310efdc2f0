//! Stores behind HTTP: S3's, Google's and Azure's, by the crate `object_store`. What it does asynchronously is waited for here, for a thread has
//! one object at a time.

use std::future::Future;
use std::ops::Range;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use bytes::Bytes;
use futures_util::StreamExt as _;
use futures_util::stream::BoxStream;
use object_store::aws::AmazonS3Builder;
use object_store::azure::MicrosoftAzureBuilder;
use object_store::gcp::GoogleCloudStorageBuilder;
use object_store::multipart::{MultipartStore, PartId};
use object_store::path::Path;
use object_store::{
    Attribute, Attributes, BackoffConfig, Error, GetOptions, GetResult, ObjectMeta, ObjectStore,
    ObjectStoreExt as _, ObjectStoreScheme, PutMode, PutMultipartOptions, PutOptions, RetryConfig,
};
use tokio::runtime::Runtime;

use super::blocks::Blocks;
use super::errors::of;
use super::parts::Parts;
use super::places::RemotePlace;
use super::signing::Libcrypto;
use super::timeouts::Timeouts;
use super::{BY_ETAG, Found, Listing, Making, Sharing, Standing, Store, Unlisted, Upload};
use crate::outcome::{Failure, Kind, Retries};

/// The attribute that holds a mark. Letters only: some stores take identifiers, some proxies drop what has an underscore.
const MARK: Attribute = Attribute::Metadata(std::borrow::Cow::Borrowed("evenermark"));

/// What waits for sockets and clocks: two threads, for all others compute.
static RUNTIME: LazyLock<std::io::Result<Runtime>> = LazyLock::new(|| {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .thread_name("evener-io")
        .build()
});

/// Part of a bucket or container.
pub(super) struct Remote {
    objects: Arc<dyn ObjectStore>,
    uploads: Uploads,
    prefix: Path,
    runtime: &'static Runtime,
}

/// How a store takes an output by parts.
enum Uploads {
    /// Parts have numbers, and the mark comes before them.
    Parts(Arc<dyn MultipartStore>),
    /// Azure's way, by a client that tries for long itself.
    Blocks(Arc<dyn ObjectStore>),
}

impl Remote {
    /// The place that a URI names, with what the environment says of credentials and endpoints.
    pub(super) fn open(place: &str, retries: Retries) -> Result<Self, Failure> {
        let refused = |error: &dyn std::fmt::Display| Failure::never(format_args!("{place}: {error}"));
        let RemotePlace { scheme, prefix, .. } = RemotePlace::parse(place)?;
        let runtime = RUNTIME.as_ref().map_err(|error| refused(error))?;
        let (objects, uploads) = connected(&scheme, place, retries).map_err(|error| refused(&error))?;
        Ok(Self { objects, uploads, prefix, runtime })
    }

    fn path(&self, name: &str) -> Result<Path, Failure> {
        let path =
            if self.prefix.as_ref().is_empty() { name.to_owned() } else { format!("{}/{name}", self.prefix) };
        Path::parse(path).map_err(Failure::never)
    }

    fn wait<T>(&self, work: impl Future<Output = Result<T, Error>>) -> Result<T, Failure> {
        self.runtime.block_on(work).map_err(|error| of(&error))
    }
}

/// Both faces of one store.
type Faces = (Arc<dyn ObjectStore>, Uploads);

/// How long a request is sent again as it was signed: stores take a signature for some minutes.
const SIGNATURE_AGE_MAX: Duration = Duration::from_secs(240);

fn connected(scheme: &ObjectStoreScheme, place: &str, retries: Retries) -> Result<Faces, Error> {
    fn faces(store: impl ObjectStore + MultipartStore) -> Faces {
        let store = Arc::new(store);
        (Arc::clone(&store) as Arc<dyn ObjectStore>, Uploads::Parts(store))
    }
    // Short tries: the long ones are ours, over the whole of a request.
    let backoff = BackoffConfig { max_backoff: Duration::from_secs(2), ..BackoffConfig::default() };
    let retry = RetryConfig { backoff, max_retries: 3, retry_timeout: Duration::from_secs(60) };
    match scheme {
        ObjectStoreScheme::AmazonS3 => {
            // What removes many objects with one request is not in all servers.
            let builder = AmazonS3Builder::from_env().with_url(place).with_retry(retry);
            let builder = builder.with_disable_bulk_delete(true);
            let builder = builder.with_http_connector(Timeouts::USUAL);
            builder.with_crypto_provider(Arc::new(Libcrypto)).build().map(faces)
        }
        ObjectStoreScheme::GoogleCloudStorage => {
            let builder = GoogleCloudStorageBuilder::from_env().with_url(place).with_retry(retry);
            let builder = builder.with_http_connector(Timeouts::USUAL);
            builder.with_crypto_provider(Arc::new(Libcrypto)).build().map(faces)
        }
        ObjectStoreScheme::MicrosoftAzure => {
            let builder = MicrosoftAzureBuilder::from_env().with_url(place);
            let builder = builder.with_http_connector(Timeouts::USUAL);
            let builder = builder.with_crypto_provider(Arc::new(Libcrypto));
            let long = RetryConfig {
                max_retries: usize::MAX,
                retry_timeout: retries.timeout.min(SIGNATURE_AGE_MAX),
                ..retry.clone()
            };
            let blocks = builder.clone().with_retry(long).build()?;
            Ok((Arc::new(builder.with_retry(retry).build()?), Uploads::Blocks(Arc::new(blocks))))
        }
        _ => Err(Error::NotSupported { source: "stores are s3://, gs://, az:// and file://".into() }),
    }
}

impl Store for Remote {
    fn list(&self, after: &str) -> Listing {
        // The offset may be less than `after`, never more: a path takes no slash at its end.
        let offset = self.path(after).ok().filter(|_| !after.is_empty());
        let stream = match &offset {
            Some(offset) => self.objects.list_with_offset(Some(&self.prefix), offset),
            None => self.objects.list(Some(&self.prefix)),
        };
        Box::new(Objects { stream, prefix: self.prefix.clone(), runtime: self.runtime })
    }

    fn read(&self, found: &Found, range: Range<u64>) -> Result<Bytes, Failure> {
        let (path, wanted) = (self.path(&found.name)?, range.end - range.start);
        // Of no bytes it is asked all the same whether the object is that one.
        let head = range.is_empty();
        let if_match = found.version.strip_prefix(BY_ETAG).map(quoted);
        let range = (!head).then(|| range.into());
        let options = GetOptions { range, if_match, head, ..GetOptions::default() };
        let answer = self.wait(self.objects.get_opts(&path, options));
        let answer = answer.and_then(|answer| is_of(&answer.meta, found).map(|()| answer));
        let answer = answer.map_err(|failure| self.why_unread(found, failure))?;
        if head {
            return Ok(Bytes::new());
        }
        let bytes = self.wait(answer.bytes())?;
        if bytes.len() as u64 == wanted {
            Ok(bytes)
        } else {
            Err(Failure::new(Kind::Transient, format_args!("{} bytes came of {wanted}", bytes.len())))
        }
    }

    fn standing(&self, name: &str) -> Result<Option<Standing>, Failure> {
        let Some(head) = self.head(name)? else { return Ok(None) };
        let mark = head.attributes.get(&MARK).map(|mark| mark.as_ref().to_owned());
        // Who writes to it makes another object, which has no mark.
        Ok(Some(Standing { mark, is_changed: false }))
    }

    fn is_marker(&self, found: &Found) -> Result<bool, Failure> {
        if found.bytes > 0 {
            return Ok(false);
        }
        let Some(head) = self.head(&found.name)? else { return Ok(true) };
        // Beside a marker there may be an object under its name without the slash.
        let Err(changed) = is_of(&head.meta, found) else { return Ok(false) };
        if self.has_slash(found)? { Ok(true) } else { Err(changed) }
    }

    fn put(&self, making: &Making, output: Bytes) -> Result<(), Failure> {
        let path = self.path(&making.name)?;
        let mode = if making.replaces { PutMode::Overwrite } else { PutMode::Create };
        let options = PutOptions { mode, attributes: attributes(making), ..PutOptions::default() };
        self.wait(self.objects.put_opts(&path, output.into(), options)).map(drop)
    }

    fn begin(&self, making: &Making) -> Result<Arc<dyn Upload>, Failure> {
        let (path, options, runtime) = (self.path(&making.name)?, with_mark(making), self.runtime);
        match &self.uploads {
            Uploads::Parts(store) => {
                let id = self.wait(store.create_multipart_opts(&path, options))?;
                Ok(Arc::new(Parts::new(Arc::clone(store), runtime, path, id)))
            }
            Uploads::Blocks(store) => {
                let upload = self.wait(store.put_multipart_opts(&path, options))?;
                Ok(Arc::new(Blocks::new(upload, runtime)))
            }
        }
    }

    fn sharing(&self) -> Option<&dyn Sharing> {
        match &self.uploads {
            Uploads::Parts(_) => Some(self),
            // A list of blocks is sent by one, and the mark with it.
            Uploads::Blocks(_) => None,
        }
    }
}

impl Remote {
    fn head(&self, name: &str) -> Result<Option<GetResult>, Failure> {
        let path = self.path(name)?;
        let options = GetOptions { head: true, ..GetOptions::default() };
        match self.runtime.block_on(self.objects.get_opts(&path, options)) {
            Ok(head) => Ok(Some(head)),
            Err(error) => match unseen(&error) {
                failure if failure.kind == Kind::Absent => Ok(None),
                failure => Err(failure),
            },
        }
    }

    /// Whether what was found has a slash behind its name, which the client leaves out: then it is the first of what lies below the name.
    fn has_slash(&self, found: &Found) -> Result<bool, Failure> {
        let stream = self.objects.list(Some(&self.path(&found.name)?));
        let mut below = Objects { stream, prefix: self.prefix.clone(), runtime: self.runtime };
        match below.next() {
            Some(Ok(first)) => Ok(first == *found),
            Some(Err(unlisted)) => Err(unlisted.failure),
            None => Ok(false),
        }
    }

    /// Why an object could not be read as it was listed: one whose name ends in a slash cannot be asked for.
    fn why_unread(&self, found: &Found, failure: Failure) -> Failure {
        let is_other = matches!(failure.kind, Kind::Absent | Kind::Changed);
        if is_other && found.bytes > 0 && self.has_slash(found).unwrap_or(false) {
            return Failure::never("its name is no path, for it ends in a slash");
        }
        failure
    }

    /// The upload of this name, one of several machines.
    fn shared(&self, making: &Making, upload: &str) -> Result<Parts, Failure> {
        let Uploads::Parts(store) = &self.uploads else { return Err(unshared()) };
        Ok(Parts::new(Arc::clone(store), self.runtime, self.path(&making.name)?, upload.to_owned()))
    }
}

fn unshared() -> Failure {
    Failure::never("this store takes an output from one machine only")
}

impl Sharing for Remote {
    fn begin_shared(&self, making: &Making) -> Result<String, Failure> {
        let Uploads::Parts(store) = &self.uploads else { return Err(unshared()) };
        self.wait(store.create_multipart_opts(&self.path(&making.name)?, with_mark(making)))
    }

    fn join(&self, making: &Making, upload: &str) -> Result<Arc<dyn Upload>, Failure> {
        Ok(Arc::new(self.shared(making, upload)?))
    }

    fn complete_shared(&self, making: &Making, upload: &str, parts: Vec<String>) -> Result<(), Failure> {
        let parts = parts.into_iter().map(|content_id| PartId { content_id });
        self.shared(making, upload)?.complete_of(parts.collect())
    }

    fn abort_shared(&self, making: &Making, upload: &str) -> Result<(), Failure> {
        self.shared(making, upload)?.take_back()
    }

    fn notes(&self, folder: &str) -> Result<Vec<String>, Failure> {
        let stream = self.objects.list(Some(&self.path(folder)?));
        let listed = Objects { stream, prefix: self.prefix.clone(), runtime: self.runtime };
        let named = |found: Result<Found, Unlisted>| match found {
            Ok(found) => Ok(found.name),
            Err(unlisted) => Err(unlisted.failure),
        };
        listed.map(named).collect()
    }

    fn note(&self, name: &str) -> Result<Option<Bytes>, Failure> {
        let path = self.path(name)?;
        let read = async { self.objects.get_opts(&path, GetOptions::default()).await?.bytes().await };
        match self.wait(read) {
            Ok(text) => Ok(Some(text)),
            Err(failure) if failure.kind == Kind::Absent => Ok(None),
            Err(failure) => Err(failure),
        }
    }

    fn leave(&self, name: &str, text: Bytes, first: bool) -> Result<(), Failure> {
        let mode = if first { PutMode::Create } else { PutMode::Overwrite };
        self.wait(self.objects.put_opts(&self.path(name)?, text.into(), mode.into())).map(drop)
    }

    fn remove(&self, name: &str) -> Result<(), Failure> {
        let path = self.path(name)?;
        self.wait(async { self.objects.delete(&path).await })
    }
}

/// Why it is not known what stands under a name. Of one without an object stores say so to those only who may list.
fn unseen(error: &Error) -> Failure {
    let failure = of(error);
    if !matches!(error, Error::PermissionDenied { .. }) {
        return failure;
    }
    let missing = "a right is missing to see what stands there: to read below the place, or to list it (s3:ListBucket, storage.objects.list)";
    Failure::new(failure.kind, format_args!("{missing}; {failure}"))
}

/// What a version begins with that the store only tells.
const BY_TIME: &str = "time ";

/// An entity tag as conditions have it. Azure lists it bare.
fn quoted(etag: &str) -> String {
    if etag.ends_with('"') { etag.to_owned() } else { format!("\"{etag}\"") }
}

fn bare(etag: &str) -> &str {
    etag.trim_start_matches("W/").trim_matches('"')
}

/// Whether an answer is of the state of an object that was found. A store is asked to look at its entity tag; not every one does, and where it has
/// none, nothing but this keeps two states apart.
fn is_of(meta: &ObjectMeta, found: &Found) -> Result<(), Failure> {
    let is_same = match (found.version.strip_prefix(BY_ETAG), meta.e_tag.as_deref()) {
        (Some(tag), Some(other)) => bare(tag) == bare(other),
        (Some(_), None) => true,
        (None, _) => {
            let time = meta.last_modified.timestamp();
            if time == 0 {
                return Err(Failure::never(
                    "the store gives it neither an entity tag nor a time of change, so that no one state of it can be read",
                ));
            }
            // Headers have no fractions of seconds.
            let listed = found.version.strip_prefix(BY_TIME).and_then(|micros| micros.parse::<i64>().ok());
            listed.map(|micros| micros.div_euclid(1_000_000)) == Some(time)
        }
    };
    match is_same && meta.size == found.bytes {
        true => Ok(()),
        false => Err(Failure::new(Kind::Changed, "it has changed since it was listed")),
    }
}

/// A listing under way.
struct Objects {
    stream: BoxStream<'static, Result<ObjectMeta, Error>>,
    prefix: Path,
    runtime: &'static Runtime,
}

impl Iterator for Objects {
    type Item = Result<Found, Unlisted>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            match self.runtime.block_on(self.stream.next())? {
                Ok(meta) => {
                    if let Some(found) = self.found(meta) {
                        return Some(Ok(found));
                    }
                }
                Err(error) => return Some(Err(Unlisted { name: None, failure: of(&error) })),
            }
        }
    }
}

impl Objects {
    /// What was found, by its name below the prefix.
    fn found(&self, meta: ObjectMeta) -> Option<Found> {
        let whole = meta.location.as_ref();
        let name = match self.prefix.as_ref() {
            "" => whole,
            prefix => whole.strip_prefix(prefix)?.strip_prefix('/')?,
        };
        let version = match meta.e_tag.filter(|etag| !bare(etag).is_empty()) {
            Some(etag) => format!("{BY_ETAG}{etag}"),
            None => format!("{BY_TIME}{}", meta.last_modified.timestamp_micros()),
        };
        Some(Found { name: name.to_owned(), bytes: meta.size, version })
    }
}

fn with_mark(making: &Making) -> PutMultipartOptions {
    PutMultipartOptions { attributes: attributes(making), ..PutMultipartOptions::default() }
}

fn attributes(making: &Making) -> Attributes {
    [(MARK, making.mark.clone())].into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_condition_has_its_entity_tag_in_quotes_as_listings_of_azure_have_not() {
        assert_eq!(["0x8DE1", "\"0x8DE1\"", "W/\"1\""].map(quoted), ["\"0x8DE1\"", "\"0x8DE1\"", "W/\"1\""]);
    }
}
