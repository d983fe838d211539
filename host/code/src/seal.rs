//! Seals of ledgers that leave the process.

/// Seals ledgers of suspended programs, so that nothing but this installation can write one.
///
/// A ledger states which calls a program has made and what they returned. With a forged one, a
/// program would believe anything, and make a call that the user has not seen.
pub trait LedgerSeal: Send + Sync {
    /// Seals a ledger for a limited time.
    ///
    /// # Errors
    /// [`LedgerError::Unavailable`].
    fn seal(&self, ledger: &[u8]) -> Result<String, LedgerError>;

    /// Opens a sealed ledger. It can be opened once.
    ///
    /// # Errors
    /// Any [`LedgerError`].
    fn open(&self, sealed: &str) -> Result<Vec<u8>, LedgerError>;
}

/// Reason why a ledger cannot be sealed or opened.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LedgerError {
    /// It was changed, is incomplete, or was never sealed.
    #[error("its ledger was changed or is incomplete")]
    Invalid,
    /// The seal is that of another installation.
    #[error("its ledger was sealed by another installation of the host")]
    OtherInstallation,
    /// Too much time has passed.
    #[error("its ledger has expired")]
    Expired,
    /// The program has continued from it before.
    #[error("its ledger was used before, and calls after it may have been made")]
    Used,
    /// The key or the list of used ledgers cannot be read or written. The model gets this message,
    /// so it has no path of the host: the seal reports the cause to the operator.
    #[error("programs cannot be kept at the moment; the operator of the host can see why")]
    Unavailable,
}
