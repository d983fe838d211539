//! Owners and access lists of files and directories.

use std::fs::File;
use std::io;
use std::os::windows::ffi::OsStrExt as _;
use std::os::windows::io::{AsRawHandle as _, FromRawHandle as _, OwnedHandle};
use std::path::Path;
use std::ptr;

use windows_sys::Win32::Foundation::{ERROR_ALREADY_EXISTS, ERROR_SUCCESS, FALSE, LocalFree};
use windows_sys::Win32::Security as security;
use windows_sys::Win32::Security::Authorization as authorization;
use windows_sys::Win32::Storage::FileSystem as files;
use windows_sys::Win32::System::SystemServices as services;
use windows_sys::Win32::System::Threading as threading;

use super::{bytes_of, check};

/// Users besides the owner who may have access: the system, administrators, and the placeholders
/// for the owner.
const TRUSTED: [security::WELL_KNOWN_SID_TYPE; 4] = [
    security::WinLocalSystemSid,
    security::WinBuiltinAdministratorsSid,
    security::WinCreatorOwnerSid,
    security::WinCreatorOwnerRightsSid,
];

/// Reason why a file is not private.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exposure {
    /// Another user owns it, and can change its access list.
    Owner,
    /// Its access list names another user, or it has none.
    AccessList,
}

/// Memory of the system's local heap.
struct LocalMemory(*mut core::ffi::c_void);

impl Drop for LocalMemory {
    fn drop(&mut self) {
        // SAFETY: the system allocated it for this caller, who frees it once.
        unsafe { LocalFree(self.0) };
    }
}

/// Identity of the user of this process. The buffer has the alignment of the structure that it
/// starts with.
struct CurrentUser(Vec<u64>);

impl CurrentUser {
    fn of_this_process() -> io::Result<Self> {
        let mut handle = ptr::null_mut();
        // SAFETY: the pseudo handle of this process is always valid.
        check(unsafe {
            threading::OpenProcessToken(
                threading::GetCurrentProcess(),
                security::TOKEN_QUERY,
                &raw mut handle,
            )
        })?;
        // SAFETY: the handle was just opened, and nothing else owns it.
        let token = unsafe { OwnedHandle::from_raw_handle(handle) };
        let words = (size_of::<security::TOKEN_USER>() + security::SECURITY_MAX_SID_SIZE as usize)
            .div_ceil(size_of::<u64>());
        let mut buffer = vec![0_u64; words];
        let length = u32::try_from(words * size_of::<u64>()).unwrap_or(u32::MAX);
        let mut written = 0;
        // SAFETY: the buffer has `length` bytes, enough for the structure and any identifier.
        check(unsafe {
            security::GetTokenInformation(
                token.as_raw_handle(),
                security::TokenUser,
                buffer.as_mut_ptr().cast(),
                length,
                &raw mut written,
            )
        })?;
        Ok(Self(buffer))
    }

    fn sid(&self) -> security::PSID {
        // SAFETY: the system has written this structure to the start of the buffer, whose alignment
        // is sufficient. The identifier that it points to is in the same buffer.
        unsafe { (*self.0.as_ptr().cast::<security::TOKEN_USER>()).User.Sid }
    }

    /// Returns whether `sid` is this user, or one of [`TRUSTED`].
    fn trusts(&self, sid: security::PSID) -> bool {
        // SAFETY: both point to identifiers that outlive the call.
        let is_user = unsafe { security::EqualSid(self.sid(), sid) } != FALSE;
        is_user
            || TRUSTED.iter().any(|&known| {
                // SAFETY: `sid` points to an identifier that outlives the call.
                unsafe { security::IsWellKnownSid(sid, known) != FALSE }
            })
    }

    /// Returns the identifier in the form `S-1-…`.
    fn text(&self) -> io::Result<String> {
        let mut text = ptr::null_mut();
        // SAFETY: the identifier is valid, and `text` is storage for a pointer.
        check(unsafe { authorization::ConvertSidToStringSidW(self.sid(), &raw mut text) })?;
        let memory = LocalMemory(text.cast());
        let length = (0..).take_while(|&at| {
            // SAFETY: the string ends with a zero, at which this stops.
            unsafe { *text.add(at) != 0 }
        });
        // SAFETY: the string has that many units and is not freed before the copy is made.
        let units = unsafe { std::slice::from_raw_parts(text, length.count()) };
        let copy = String::from_utf16_lossy(units);
        drop(memory);
        Ok(copy)
    }
}

/// Creates a directory that only this user may access, and whose contents inherit that. Does
/// nothing if something with that name exists.
pub(crate) fn create_private_directory(path: &Path) -> io::Result<()> {
    let user = CurrentUser::of_this_process()?.text()?;
    // Protected from what the parent directory grants, and inherited by files and directories.
    let descriptor = wide(format!("O:{user}D:P(A;OICI;FA;;;{user})").as_ref());
    let mut parsed = ptr::null_mut();
    // SAFETY: the text ends with a zero, and `parsed` is storage for a pointer.
    check(unsafe {
        authorization::ConvertStringSecurityDescriptorToSecurityDescriptorW(
            descriptor.as_ptr(),
            authorization::SDDL_REVISION_1,
            &raw mut parsed,
            ptr::null_mut(),
        )
    })?;
    let memory = LocalMemory(parsed);
    let attributes = security::SECURITY_ATTRIBUTES {
        nLength: bytes_of::<security::SECURITY_ATTRIBUTES>(),
        lpSecurityDescriptor: memory.0,
        bInheritHandle: FALSE,
    };
    let path = wide(path.as_os_str());
    // SAFETY: the path ends with a zero; path and descriptor outlive the call.
    let created = check(unsafe { files::CreateDirectoryW(path.as_ptr(), &raw const attributes) });
    match created {
        Err(error) if is(&error, ERROR_ALREADY_EXISTS) => Ok(()),
        created => created,
    }
}

/// Returns why an opened file or directory is not private, or `None` if only this user, the system
/// and administrators may access it.
pub(crate) fn exposure(file: &File) -> io::Result<Option<Exposure>> {
    let user = CurrentUser::of_this_process()?;
    let (mut owner, mut list, mut descriptor) = (ptr::null_mut(), ptr::null_mut(), ptr::null_mut());
    // SAFETY: the handle is open, and the other arguments are storage for pointers or absent.
    let status = unsafe {
        authorization::GetSecurityInfo(
            file.as_raw_handle(),
            authorization::SE_FILE_OBJECT,
            security::OWNER_SECURITY_INFORMATION | security::DACL_SECURITY_INFORMATION,
            &raw mut owner,
            ptr::null_mut(),
            &raw mut list,
            ptr::null_mut(),
            &raw mut descriptor,
        )
    };
    if status != ERROR_SUCCESS {
        return Err(io::Error::from_raw_os_error(status.cast_signed()));
    }
    // Owner and list point into the descriptor.
    let descriptor = LocalMemory(descriptor);
    let exposure = if owner.is_null() || !user.trusts(owner) {
        Some(Exposure::Owner)
    } else if list.is_null() || !trusts_all(&user, list)? {
        Some(Exposure::AccessList)
    } else {
        None
    };
    drop(descriptor);
    Ok(exposure)
}

/// Returns whether an access list allows nothing to users who are not trusted.
fn trusts_all(user: &CurrentUser, list: *const security::ACL) -> io::Result<bool> {
    // SAFETY: the list is valid for as long as the descriptor that it is a part of.
    let count = u32::from(unsafe { (*list).AceCount });
    for index in 0..count {
        let mut entry = ptr::null_mut();
        // SAFETY: the index is below the number of entries.
        check(unsafe { security::GetAce(list, index, &raw mut entry) })?;
        // SAFETY: every entry starts with this header.
        let kind = u32::from(unsafe { (*entry.cast::<security::ACE_HEADER>()).AceType });
        match kind {
            services::ACCESS_DENIED_ACE_TYPE => {}
            services::ACCESS_ALLOWED_ACE_TYPE => {
                let entry = entry.cast::<security::ACCESS_ALLOWED_ACE>();
                // SAFETY: an entry of this type is this structure; the identifier starts at its
                // last field.
                let sid = unsafe { &raw mut (*entry).SidStart };
                if !user.trusts(sid.cast()) {
                    return Ok(false);
                }
            }
            // Entries with conditions or for parts of objects, which files usually do not have.
            _ => return Ok(false),
        }
    }
    Ok(true)
}

/// Renames a file unless the new name is taken.
pub(crate) fn rename_to_free_name(from: &Path, to: &Path) -> io::Result<()> {
    let (from, to) = (wide(from.as_os_str()), wide(to.as_os_str()));
    // SAFETY: both paths end with a zero and outlive the call. Without the flag that replaces, the
    // system refuses a name that exists.
    check(unsafe { files::MoveFileExW(from.as_ptr(), to.as_ptr(), files::MOVEFILE_WRITE_THROUGH) })
}

fn is(error: &io::Error, code: u32) -> bool {
    error.raw_os_error() == Some(code.cast_signed())
}

fn wide(text: &std::ffi::OsStr) -> Vec<u16> {
    text.encode_wide().chain([0]).collect()
}
