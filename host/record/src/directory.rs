//! Directory of a log.

#[cfg_attr(unix, path = "directory/unix.rs")]
#[cfg_attr(windows, path = "directory/windows.rs")]
mod system;

pub(crate) use self::system::{LogDirectory, is_written, lock};

use crate::RecordError;

/// Size and age of a file.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FileFacts {
    /// Length in bytes.
    pub(crate) bytes: u64,
    /// Time of the last change, in seconds since 1970.
    pub(crate) modified: i64,
}

/// Returns random bytes of the system.
pub(crate) fn random<const N: usize>() -> Result<[u8; N], RecordError> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).map_err(|error| RecordError::Random(error.to_string()))?;
    Ok(bytes)
}

/// Returns the name that a file has until it is complete.
pub(crate) fn temporary_name(name: &str) -> Result<String, RecordError> {
    let suffix = data_encoding::HEXLOWER.encode(&random::<4>()?);
    Ok(format!("{name}.{suffix}.tmp"))
}
