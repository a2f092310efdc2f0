//! What errors of stores mean for an object: whether another try may do it.

use object_store::Error;

use crate::outcome::{Failure, Kind};

/// Codes of errors, as the stores' interfaces define them, that another try meets again.
const REFUSALS: [&str; 6] = [
    "ContainerNotFound",
    "InvalidAuthenticationInfo",
    "InvalidBucketName",
    "InvalidIdentityToken",
    "NoSuchBucket",
    "PermanentRedirect",
];

/// Whether who asks, or the place, is refused. Of listings and tokens the crate tells no status, but what the store said.
fn is_refused(text: &str) -> bool {
    let status = text.split_once("status code: ").and_then(|(_, rest)| rest.get(..3));
    match status {
        Some("401" | "403") => true,
        Some("400" | "404") if text.contains("token request") => true,
        _ => REFUSALS.iter().any(|code| text.contains(&format!("<Code>{code}</Code>"))),
    }
}

/// Whether an upload was ended, or has other parts than it is to be completed of.
fn is_lost(text: &str) -> bool {
    ["NoSuchUpload", "InvalidPart"].iter().any(|code| text.contains(&format!("<Code>{code}</Code>")))
}

/// Longest text of an error in a message. Servers send pages.
const TEXT_BYTES_MAX: usize = 400;

fn shortened(text: &str) -> &str {
    let end = text.char_indices().map(|(place, _)| place).take_while(|place| *place <= TEXT_BYTES_MAX).last();
    if text.len() <= TEXT_BYTES_MAX { text } else { &text[..end.unwrap_or(0)] }
}

/// What an error of the store's means for the object.
pub(super) fn of(error: &Error) -> Failure {
    let kind = match error {
        Error::NotFound { .. } => Kind::Absent,
        Error::AlreadyExists { .. } => Kind::Exists,
        Error::Precondition { .. } | Error::NotModified { .. } => Kind::Changed,
        Error::Generic { .. } | Error::JoinError { .. } => Kind::Transient,
        _ => Kind::Never,
    };
    let text = error.to_string();
    let kind = match kind {
        Kind::Transient | Kind::Absent if is_refused(&text) => Kind::Never,
        Kind::Transient | Kind::Absent if is_lost(&text) => Kind::Lost,
        kind => kind,
    };
    Failure::new(kind, shortened(&text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_store_says_is_told_apart_from_what_another_try_may_do() {
        let says = |text: &str| Error::Generic { store: "a store", source: text.to_owned().into() };
        let status = |text: &str| says(&format!("Server returned non-2xx status code: {text}"));
        let token = |text: &str| {
            says(&format!("Error performing token request: Server returned non-2xx status code: {text}"))
        };
        for (error, kind) in [
            (status("503 Service Unavailable: <Code>SlowDown</Code>"), Kind::Transient),
            (status("400 Bad Request: <Code>RequestTimeout</Code>"), Kind::Transient),
            (status("404 Not Found: <Code>NoSuchUpload</Code>"), Kind::Lost),
            (status("400 Bad Request: <Code>InvalidPart</Code>"), Kind::Lost),
            (status("404 Not Found: <Code>NoSuchBucket</Code>"), Kind::Never),
            (status("403 Forbidden: <Code>AuthorizationPermissionMismatch</Code>"), Kind::Never),
            (status("400 Bad Request: <Code>InvalidAuthenticationInfo</Code>"), Kind::Never),
            (token("400 Bad Request: {\"error\": \"invalid_grant\"}"), Kind::Never),
            (token("503 Service Unavailable: "), Kind::Transient),
            (says("error sending request"), Kind::Transient),
        ] {
            assert_eq!(of(&error).kind, kind, "{error}");
        }
    }
}
