//! Scripts, the style sheet and the icon, which are part of the program.
//!
//! The path of an asset contains a digest of its content, so that a browser may keep it for good.

use std::sync::LazyLock;

use data_encoding::HEXLOWER;
use sha2::{Digest, Sha256};

/// Number of bytes of the digest in a path.
const DIGEST_BYTES: usize = 8;

/// An asset.
#[derive(Debug)]
pub(crate) struct Asset {
    path: LazyLock<String>,
    pub(crate) media_type: &'static str,
    pub(crate) content: &'static str,
}

const SCRIPT: &str = "text/javascript; charset=utf-8";

macro_rules! asset {
    ($file:literal, $media_type:expr) => {
        Asset {
            path: LazyLock::new(|| path($file, include_str!(concat!("../assets/", $file)))),
            media_type: $media_type,
            content: include_str!(concat!("../assets/", $file)),
        }
    };
}

pub(crate) static STYLE: Asset = asset!("style.css", "text/css; charset=utf-8");
pub(crate) static LOGIN: Asset = asset!("login.js", SCRIPT);
pub(crate) static PAGE: Asset = asset!("page.js", SCRIPT);
pub(crate) static LIVE: Asset = asset!("live.js", SCRIPT);
pub(crate) static APPROVALS: Asset = asset!("approvals.js", SCRIPT);
pub(crate) static FORM: Asset = asset!("form.js", SCRIPT);
pub(crate) static SAVED: Asset = asset!("saved.js", SCRIPT);
pub(crate) static REPLAY: Asset = asset!("replay.js", SCRIPT);
pub(crate) static RUN: Asset = asset!("run.js", SCRIPT);
pub(crate) static ICON: Asset = asset!("icon.svg", "image/svg+xml");

static ALL: [&Asset; 10] =
    [&STYLE, &LOGIN, &PAGE, &LIVE, &APPROVALS, &FORM, &SAVED, &REPLAY, &RUN, &ICON];

impl Asset {
    /// Returns the path with the digest.
    pub(crate) fn path(&self) -> &str {
        &self.path
    }
}

/// Returns the asset with a path.
pub(crate) fn find(path: &str) -> Option<&'static Asset> {
    ALL.iter().find(|asset| asset.path() == path).copied()
}

fn path(name: &str, content: &str) -> String {
    let digest = Sha256::digest(content.as_bytes());
    let digest = HEXLOWER.encode(digest.get(..DIGEST_BYTES).unwrap_or_default());
    format!("/assets/{digest}/{name}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_change_with_the_content() {
        assert_eq!(path("a.js", ""), "/assets/e3b0c44298fc1c14/a.js");
        assert!(find(STYLE.path()).is_some());
        assert!(find("/assets/e3b0c44298fc1c14/style.css").is_none());
    }

    #[test]
    fn scripts_use_no_sink_that_a_browser_would_refuse() {
        for asset in ALL {
            for sink in ["innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval("]
            {
                assert!(!asset.content.contains(sink), "{} uses {sink}", asset.path());
            }
        }
    }
}
