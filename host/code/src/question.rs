//! Names of the questions about calls of a program.

use cofferdam_tool::ask::Asker;
use data_encoding::HEXLOWER;
use sha2::{Digest as _, Sha256};

/// Number of hexadecimal digits of a program in a name, which has at most 64 characters.
const DIGEST_DIGITS: usize = 16;

/// Names of the questions of one program. They depend on the program and the numbers of its calls,
/// so that a program that runs again gets the earlier answers, and no other program gets them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct QuestionNames {
    prefix: String,
}

impl QuestionNames {
    pub(crate) fn of(code: &str) -> Self {
        let mut digest = HEXLOWER.encode(&Sha256::digest(code));
        digest.truncate(DIGEST_DIGITS);
        Self { prefix: format!("code_{digest}_") }
    }

    /// Returns the name of the question whether a call may run.
    pub(crate) fn approval(&self, number: u64) -> String {
        format!("{}approval_{number}", self.prefix)
    }

    /// Returns whether an earlier run of the program has asked a question.
    pub(crate) fn were_asked(&self, asker: &dyn Asker) -> bool {
        let earlier = asker.earlier_questions().unwrap_or_default();
        earlier.iter().any(|name| name.starts_with(&self.prefix))
    }
}
