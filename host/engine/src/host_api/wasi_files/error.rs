//! Error codes of failed operations: the only details that a guest learns about them.

use cofferdam_files::{FileError, QuotaExceeded};
use wasmtime_wasi::p2::FsError;
use wasmtime_wasi::p2::bindings::filesystem::types::ErrorCode;

/// Returns the code for an error of a store.
pub(super) fn code(error: &FileError) -> ErrorCode {
    match error {
        FileError::Path(_) | FileError::IntoItself => ErrorCode::Invalid,
        FileError::NotFound => ErrorCode::NoEntry,
        FileError::Link | FileError::Special | FileError::CreateOnly => ErrorCode::NotPermitted,
        FileError::AlreadyExists => ErrorCode::Exist,
        FileError::IsDirectory => ErrorCode::IsDirectory,
        FileError::IsFile | FileError::ParentIsFile | FileError::NotDirectory => {
            ErrorCode::NotDirectory
        }
        FileError::NotEmpty => ErrorCode::NotEmpty,
        FileError::Root | FileError::Conflict { .. } | FileError::Busy => ErrorCode::Busy,
        FileError::Quota(QuotaExceeded::FileBytes { .. }) => ErrorCode::FileTooLarge,
        FileError::Quota(_) => ErrorCode::Quota,
        FileError::ReadOnly => ErrorCode::ReadOnly,
        FileError::Memory { .. } | FileError::Disk { .. } => ErrorCode::InsufficientSpace,
        FileError::TooLarge { .. } => ErrorCode::Overflow,
        _ => ErrorCode::Io,
    }
}

/// Converts an error of a store to the guest's error type.
pub(super) fn to_fs_error(error: FileError) -> FsError {
    code(&error).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotas_have_codes_of_their_own() {
        let file = FileError::Quota(QuotaExceeded::FileBytes { limit: 1 });
        let entries = FileError::Quota(QuotaExceeded::Entries { limit: 1 });
        assert_eq!((code(&file), code(&entries)), (ErrorCode::FileTooLarge, ErrorCode::Quota));
    }

    #[test]
    fn the_guest_does_not_receive_the_error_of_the_host() {
        let host = FileError::from(std::io::Error::other("/home/me/secret"));
        assert_eq!(code(&host), ErrorCode::Io);
        assert!(!to_fs_error(host).to_string().contains("secret"));
    }
}
