//! Names of the questions about calls of a program.

use cofferdam_tool::ask::Asker;
use data_encoding::HEXLOWER;
use sha2::{Digest as _, Sha256};

/// Number of hexadecimal digits of a program in a name, which has at most 64 characters.
const DIGEST_DIGITS: usize = 16;

/// Returns the name of the question whether a call of a program may run. It depends on the program
/// and the number of the call, so that a program that runs again gets the earlier answer, and no
/// other program gets it.
pub(crate) fn approval_name(code: &str, number: u64) -> String {
    format!("{}approval_{number}", prefix(code))
}

/// Returns whether an earlier run of a program has asked a question.
pub(crate) fn was_asked(code: &str, asker: &dyn Asker) -> bool {
    let earlier = asker.earlier_questions().unwrap_or_default();
    if earlier.is_empty() {
        // Most programs are new, and need no digest.
        return false;
    }
    let prefix = prefix(code);
    earlier.iter().any(|name| name.starts_with(&prefix))
}

fn prefix(code: &str) -> String {
    let mut digest = HEXLOWER.encode(&Sha256::digest(code));
    digest.truncate(DIGEST_DIGITS);
    format!("code_{digest}_")
}
