//! Calls of the Windows API that no library of this workspace wraps: job objects, mitigation
//! policies, and owners and access lists of files.

#![expect(unsafe_code, reason = "system calls without a safe wrapper")]

mod access;

use std::io;
use std::os::windows::io::{AsRawHandle as _, FromRawHandle as _, OwnedHandle};
use std::process::ExitStatus;
use std::ptr;

use tokio::process::Child;
use windows_sys::Win32::Foundation::{ERROR_NOT_ENOUGH_QUOTA, FALSE};
use windows_sys::Win32::System::JobObjects as jobs;
use windows_sys::Win32::System::Threading as threading;
use windows_sys::core::BOOL;

pub(crate) use self::access::{Exposure, create_private_directory, exposure, rename_to_free_name};
use super::limits::ProcessLimits;

/// Time units of a job object in one second.
const TICKS_PER_SECOND: u64 = 10_000_000;

/// Limits of a job object. Breakaway is not among them, so that a process cannot leave the job.
const LIMIT_FLAGS: jobs::JOB_OBJECT_LIMIT = jobs::JOB_OBJECT_LIMIT_PROCESS_MEMORY
    | jobs::JOB_OBJECT_LIMIT_PROCESS_TIME
    | jobs::JOB_OBJECT_LIMIT_ACTIVE_PROCESS
    | jobs::JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE
    | jobs::JOB_OBJECT_LIMIT_DIE_ON_UNHANDLED_EXCEPTION;

/// No windows of others, clipboard, global atoms, desktops or shutdown.
const UI_LIMITS: jobs::JOB_OBJECT_UILIMIT = jobs::JOB_OBJECT_UILIMIT_HANDLES
    | jobs::JOB_OBJECT_UILIMIT_READCLIPBOARD
    | jobs::JOB_OBJECT_UILIMIT_WRITECLIPBOARD
    | jobs::JOB_OBJECT_UILIMIT_SYSTEMPARAMETERS
    | jobs::JOB_OBJECT_UILIMIT_DISPLAYSETTINGS
    | jobs::JOB_OBJECT_UILIMIT_GLOBALATOMS
    | jobs::JOB_OBJECT_UILIMIT_DESKTOP
    | jobs::JOB_OBJECT_UILIMIT_EXITWINDOWS;

/// Job object. Dropping it kills the processes in it.
pub(super) struct JobObject(OwnedHandle);

impl JobObject {
    /// Creates a job for a single process under `limits`, which cannot start another one.
    pub(super) fn for_one_process(limits: &ProcessLimits) -> io::Result<Self> {
        // SAFETY: both arguments are optional.
        let handle = unsafe { jobs::CreateJobObjectW(ptr::null(), ptr::null()) };
        if handle.is_null() {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the handle was just created, and nothing else owns it.
        let job = Self(unsafe { OwnedHandle::from_raw_handle(handle) });
        let ticks = limits.cpu_seconds.saturating_mul(TICKS_PER_SECOND);
        job.set(
            jobs::JobObjectExtendedLimitInformation,
            &jobs::JOBOBJECT_EXTENDED_LIMIT_INFORMATION {
                BasicLimitInformation: jobs::JOBOBJECT_BASIC_LIMIT_INFORMATION {
                    PerProcessUserTimeLimit: i64::try_from(ticks).unwrap_or(i64::MAX),
                    LimitFlags: LIMIT_FLAGS,
                    ActiveProcessLimit: 1,
                    ..Default::default()
                },
                ProcessMemoryLimit: usize::try_from(limits.memory_bytes).unwrap_or(usize::MAX),
                ..Default::default()
            },
        )?;
        job.set(
            jobs::JobObjectBasicUIRestrictions,
            &jobs::JOBOBJECT_BASIC_UI_RESTRICTIONS { UIRestrictionsClass: UI_LIMITS },
        )?;
        Ok(job)
    }

    /// Puts a process into the job.
    pub(super) fn assign(&self, child: &Child) -> io::Result<()> {
        let process = child.raw_handle();
        let process = process.ok_or_else(|| io::Error::other("the process has ended"))?;
        // SAFETY: `child` owns the handle of its process, and the job its own.
        check(unsafe { jobs::AssignProcessToJobObject(self.0.as_raw_handle(), process) })
    }

    fn set<T>(&self, class: jobs::JOBOBJECTINFOCLASS, information: &T) -> io::Result<()> {
        let buffer = ptr::from_ref(information).cast();
        // SAFETY: the structure is the one of its class, which both callers pass together, and
        // outlives the call.
        check(unsafe {
            jobs::SetInformationJobObject(self.0.as_raw_handle(), class, buffer, bytes_of::<T>())
        })
    }
}

/// Returns whether this process is in a job.
pub(super) fn is_in_job() -> io::Result<bool> {
    let mut is_in_job = FALSE;
    // SAFETY: the pseudo handle of this process is always valid, and the job is optional.
    check(unsafe {
        jobs::IsProcessInJob(threading::GetCurrentProcess(), ptr::null_mut(), &raw mut is_in_job)
    })?;
    Ok(is_in_job != FALSE)
}

/// Returns whether the system ended a process because it had used up a quota.
pub(super) fn is_quota_exit(status: ExitStatus) -> bool {
    status.code().and_then(|code| u32::try_from(code).ok()) == Some(ERROR_NOT_ENOUGH_QUOTA)
}

/// Flags of [`threading::ProcessImageLoadPolicy`]: no images from other machines, and none of low
/// integrity.
const NO_REMOTE_IMAGES: u32 = 0b11;
/// Lowest flag of the other policies, which is the strict one.
const STRICT: u32 = 0b1;

/// Takes rights from this process that compiling does not need. Cannot be undone.
///
/// # Errors
/// If the process can still run generated code or start programs. Everything else is optional.
pub(super) fn restrict_this_process() -> io::Result<()> {
    // The compiler never runs its output.
    set_policy(threading::ProcessDynamicCodePolicy, STRICT)?;
    set_policy(threading::ProcessChildProcessPolicy, STRICT)?;
    for (policy, flags) in [
        (threading::ProcessImageLoadPolicy, NO_REMOTE_IMAGES),
        (threading::ProcessExtensionPointDisablePolicy, STRICT),
        // Fails if a library has already created a window.
        (threading::ProcessSystemCallDisablePolicy, STRICT),
    ] {
        let _optional = set_policy(policy, flags);
    }
    Ok(())
}

fn set_policy(policy: threading::PROCESS_MITIGATION_POLICY, flags: u32) -> io::Result<()> {
    let buffer = ptr::from_ref(&flags).cast();
    // SAFETY: each of these policies is a structure of one `u32`, which outlives the call.
    check(unsafe { threading::SetProcessMitigationPolicy(policy, buffer, size_of::<u32>()) })
}

fn check(result: BOOL) -> io::Result<()> {
    if result == FALSE { Err(io::Error::last_os_error()) } else { Ok(()) }
}

fn bytes_of<T>() -> u32 {
    u32::try_from(size_of::<T>()).unwrap_or(u32::MAX)
}
