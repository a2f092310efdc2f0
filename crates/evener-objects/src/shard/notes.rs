//! What machines leave for each other while each does ranges of one object, so that their parts become one output. Nothing in it is secret.
//!
//! ```text
//! .evener/OBJECT/TRY/0      an agreement: the upload to which all send; who puts it first is taken at its word
//! .evener/OBJECT/TRY/0-2    a receipt: what the store calls the parts of range 2 in that upload
//! .evener/OBJECT/TRY/1      the next agreement, where that upload was lost
//! ```
//! OBJECT is a digest of which object it is. TRY has the mark of the output and how it is cut, so that machines with other keys, another plan or
//! other parts see each other and mix nothing.

use std::collections::BTreeMap;

use bytes::Bytes;
use evener_shards::Ranged;
use openssl::sha::Sha256;
use serde::{Deserialize, Serialize};

use super::order::Order;
use super::{PART_BYTES, PARTS_MAX};
use crate::outcome::{Failure, Kind};
use crate::store::{Making, RESERVED};

/// Bytes of the digest in the name of a folder.
const DIGEST_BYTES: usize = 16;

/// Where notes on one object lie.
pub(super) struct Notes {
    /// All on this object, with a slash behind it, and those of this try.
    folder: String,
    own: String,
}

/// An upload to which all send.
#[derive(Clone, Debug)]
pub(super) struct Agreement {
    /// How many were lost before it.
    pub(super) number: u32,
    pub(super) upload: String,
}

/// What there is.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Seen {
    /// The newest agreement.
    pub(super) newest: Option<u32>,
    /// Ranges that are whole in its upload.
    pub(super) whole: Vec<u32>,
    /// Whether others, who are not waited for, have begun the same object otherwise, or an upload was lost.
    pub(super) is_disturbed: bool,
}

/// As it stands in an agreement.
#[derive(Serialize, Deserialize)]
struct AgreementText {
    upload: String,
}

/// As it stands in a receipt.
#[derive(Serialize, Deserialize)]
struct ReceiptText {
    upload: String,
    parts: Vec<String>,
}

impl Notes {
    pub(super) fn new(shard: &Order<'_>, object: &Ranged, making: &Making) -> Self {
        let mut digest = Sha256::new();
        let bytes = object.bytes.to_le_bytes();
        let about: [&[u8]; 5] = [
            &shard.plan.salt,
            shard.plan.source.as_bytes(),
            object.name.as_bytes(),
            object.tag.as_bytes(),
            &bytes,
        ];
        for part in about {
            digest.update(&(part.len() as u64).to_le_bytes());
            digest.update(part);
        }
        let digest = digest.finish();
        let digits: String = digest[..DIGEST_BYTES].iter().map(|byte| format!("{byte:02x}")).collect();
        let folder = format!("{RESERVED}/{digits}/");
        // What a part is follows from these two, the object's length and the key, which is in the mark.
        let own = format!("{folder}{}-{}-{PART_BYTES}-{PARTS_MAX}/", making.mark, object.count);
        Self { folder, own }
    }

    /// Looks at what is there.
    pub(super) fn look(&self, shard: &Order<'_>) -> Result<Seen, Failure> {
        let names = self.all(shard)?;
        Ok(self.seen(names.iter().map(String::as_str)))
    }

    fn seen<'n>(&self, names: impl Iterator<Item = &'n str>) -> Seen {
        let (mut newest, mut others, mut receipts) = (None, false, BTreeMap::<u32, Vec<u32>>::new());
        for name in names {
            let Some(own) = name.strip_prefix(&self.own) else {
                others = true;
                continue;
            };
            match own.split_once('-') {
                None => newest = newest.max(own.parse().ok()),
                Some((agreement, range)) => {
                    if let (Ok(agreement), Ok(range)) = (agreement.parse(), range.parse()) {
                        receipts.entry(agreement).or_default().push(range);
                    }
                }
            }
        }
        let whole = newest.and_then(|newest| receipts.remove(&newest)).unwrap_or_default();
        Seen { newest, whole, is_disturbed: others || newest > Some(0) }
    }

    /// An agreement, unless it was taken away.
    pub(super) fn agreement(&self, shard: &Order<'_>, number: u32) -> Result<Option<Agreement>, Failure> {
        let text = shard.patiently(|| shard.sharing()?.note(&self.agreement_name(number)))?;
        let read = |text: Bytes| {
            serde_json::from_slice(&text).map_err(|_| Failure::never("a note below .evener is none"))
        };
        let text: Option<AgreementText> = text.map(read).transpose()?;
        Ok(text.map(|AgreementText { upload }| Agreement { number, upload }))
    }

    /// Begins an upload and puts its agreement, unless another was quicker: then its upload is taken back. Whose it is, is looked at afterwards.
    pub(super) fn begin(&self, shard: &Order<'_>, making: &Making, number: u32) -> Result<(), Failure> {
        let upload = shard.patiently(|| shard.sharing()?.begin_shared(making))?;
        let text = written(&AgreementText { upload: upload.clone() });
        match shard.patiently(|| shard.sharing()?.leave(&self.agreement_name(number), text.clone(), true)) {
            // It may be this one, where an answer was lost.
            Err(failure) if failure.kind == Kind::Exists => {
                if self.agreement(shard, number)?.is_none_or(|agreement| agreement.upload != upload) {
                    shard.sharing()?.abort_shared(making, &upload).ok();
                }
                Ok(())
            }
            put => put,
        }
    }

    /// Puts a receipt.
    pub(super) fn receive(
        &self,
        shard: &Order<'_>,
        agreement: &Agreement,
        range: u32,
        parts: &[String],
    ) -> Result<(), Failure> {
        let text = written(&ReceiptText { upload: agreement.upload.clone(), parts: parts.to_vec() });
        let name = self.receipt_name(agreement.number, range);
        shard.patiently(|| shard.sharing()?.leave(&name, text.clone(), false))
    }

    /// What the store calls the parts of a range, where there is a receipt of this upload.
    pub(super) fn parts(
        &self,
        shard: &Order<'_>,
        agreement: &Agreement,
        range: u32,
    ) -> Result<Option<Vec<String>>, Failure> {
        let name = self.receipt_name(agreement.number, range);
        let text = shard.patiently(|| shard.sharing()?.note(&name))?;
        let receipt = text.and_then(|text| serde_json::from_slice::<ReceiptText>(&text).ok());
        Ok(receipt.filter(|receipt| receipt.upload == agreement.upload).map(|receipt| receipt.parts))
    }

    /// Takes away all that is there on this object, and takes back uploads: the output is there, or will never be. What cannot be removed is
    /// left to who comes next.
    pub(super) fn clear(&self, shard: &Order<'_>, making: &Making) {
        let (Ok(sharing), Ok(names)) = (shard.sharing(), self.all(shard)) else { return };
        // Agreements go last, so that no receipt is ever taken for one of a later upload.
        let is_receipt = |name: &String| name.rsplit('/').next().is_some_and(|own| own.contains('-'));
        let (receipts, agreements): (Vec<_>, Vec<_>) = names.into_iter().partition(is_receipt);
        // Who is done too removes them at the same time.
        let is_gone = |name: &String| match shard.patiently(|| sharing.remove(name)) {
            Ok(()) => true,
            Err(failure) => failure.kind == Kind::Absent,
        };
        if !receipts.iter().all(is_gone) {
            return;
        }
        for name in agreements {
            let text = sharing.note(&name).ok().flatten();
            if let Some(AgreementText { upload }) = text.and_then(|text| serde_json::from_slice(&text).ok()) {
                sharing.abort_shared(making, &upload).ok();
            }
            is_gone(&name);
        }
    }

    fn all(&self, shard: &Order<'_>) -> Result<Vec<String>, Failure> {
        shard.patiently(|| shard.sharing()?.notes(&self.folder))
    }

    fn agreement_name(&self, number: u32) -> String {
        format!("{}{number}", self.own)
    }

    fn receipt_name(&self, agreement: u32, range: u32) -> String {
        format!("{}{agreement}-{range}", self.own)
    }
}

fn written(text: &impl Serialize) -> Bytes {
    serde_json::to_vec(text).expect("texts can be written").into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_there_is_is_read_from_names_whatever_else_lies_there() {
        let notes = Notes { folder: ".evener/d/".to_owned(), own: ".evener/d/m-3/".to_owned() };
        let seen = |names: &[&str]| {
            let Seen { newest, mut whole, is_disturbed } = notes.seen(names.iter().copied());
            whole.sort_unstable();
            (newest, whole, is_disturbed)
        };
        assert_eq!(seen(&[]), (None, vec![], false));
        assert_eq!(seen(&[".evener/d/m-3/0"]), (Some(0), vec![], false));
        let names = [".evener/d/m-3/0-10", ".evener/d/m-3/0-2", ".evener/d/m-3/0"];
        assert_eq!(seen(&names), (Some(0), vec![2, 10], false));
        // Receipts of an upload that was lost count no more, and those without an agreement never did.
        let names = [&names[..], &[".evener/d/m-3/1", ".evener/d/m-3/1-0", ".evener/d/m-3/2-1"]].concat();
        assert_eq!(seen(&names), (Some(1), vec![0], true));
        assert_eq!(seen(&[".evener/d/m-3/0-1"]), (None, vec![], false));
        // Another key or plan has begun the same.
        assert_eq!(seen(&[".evener/d/m-3/0", ".evener/d/n-3/0"]), (Some(0), vec![], true));
        assert_eq!(seen(&[".evener/d/m-3/nonsense", ".evener/d/m-3/x-y"]), (None, vec![], false));
    }
}
