//! Access lists as archives write them, and as the system keeps them: text with numbers of users and groups, and an attribute.

/// How the attribute begins: its version, little end first.
const VERSION: [u8; 4] = [2, 0, 0, 0];
const ENTRY_BYTES: usize = 8;
/// The number of an entry that is of no user by number.
const NOBODY: u32 = u32::MAX;

/// Words of entries, their numbers, and whether they are for a user or group by number.
const KINDS: [(&str, u16, bool); 6] = [
    ("user", 0x01, false),
    ("user", 0x02, true),
    ("group", 0x04, false),
    ("group", 0x08, true),
    ("mask", 0x10, false),
    ("other", 0x20, false),
];

/// The text of an attribute; `None` where it is none of this version.
pub(super) fn text(attribute: &[u8]) -> Option<String> {
    let entries = attribute.strip_prefix(&VERSION)?;
    let text = |entry: &[u8]| {
        let (tag, rights) = (u16::from_le_bytes([entry[0], entry[1]]), entry[2]);
        let id = u32::from_le_bytes([entry[4], entry[5], entry[6], entry[7]]);
        let (word, _, is_named) = KINDS.iter().find(|kind| kind.1 == tag)?;
        let who = if *is_named { id.to_string() } else { String::new() };
        let rights: String = [(4, 'r'), (2, 'w'), (1, 'x')]
            .map(|(bit, letter)| if rights & bit > 0 { letter } else { '-' })
            .iter()
            .collect();
        Some(format!("{word}:{who}:{rights}"))
    };
    let entries: Option<Vec<_>> = entries.chunks_exact(ENTRY_BYTES).map(text).collect();
    Some(entries?.join(","))
}

/// The attribute of a text; `None` where it is no access list, or one that goes by names.
pub(super) fn attribute(text: &str) -> Option<Vec<u8>> {
    let mut entries = Vec::new();
    for entry in text.split([',', '\n']).map(str::trim).filter(|entry| !entry.is_empty()) {
        let mut parts = entry.split(':');
        let (word, who, rights) = (parts.next()?, parts.next()?, parts.next()?);
        // Some write the number behind the name.
        let who = parts.next().unwrap_or(who);
        let (_, tag, is_named) = KINDS.iter().find(|kind| kind.0 == word && kind.2 != who.is_empty())?;
        let id = if *is_named { who.parse().ok()? } else { NOBODY };
        let bits = [('r', 4_u16), ('w', 2), ('x', 1)];
        let rights =
            bits.iter().filter(|(letter, _)| rights.contains(*letter)).map(|(_, bit)| bit).sum::<u16>();
        entries.push((*tag, id, rights));
    }
    // As the system wants them.
    entries.sort_unstable();
    let mut attribute = VERSION.to_vec();
    for (tag, id, rights) in entries {
        attribute.extend_from_slice(&tag.to_le_bytes());
        attribute.extend_from_slice(&rights.to_le_bytes());
        attribute.extend_from_slice(&id.to_le_bytes());
    }
    Some(attribute)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_comes_back_and_one_by_names_is_none() {
        let list = "user::rwx,user:1234:r--,group::r-x,group:99:rw-,mask::rwx,other::---";
        let kept = attribute(list).unwrap();
        assert_eq!(text(&kept).as_deref(), Some(list));
        assert_eq!(
            attribute("group::r-x\nother::---\nuser:1234:r--,user::rwx,group:99:rw-,mask::rwx"),
            Some(kept.clone())
        );
        assert_eq!(attribute("user:alice:r--"), None);
        assert_eq!(
            attribute("user:alice:r--:1234").map(|kept| kept[8..].to_vec()),
            Some(1234_u32.to_le_bytes().to_vec())
        );
        assert_eq!(text(&kept[1..]), None);
    }
}
