//! Removes all rights from the compile child that compiling does not need.
//!
//! The child processes hostile bytes. If they took over the compiler, they would find a process
//! that can compute, allocate, wait and write to its pipes, within its limits, and nothing else. So
//! there is no way to open a file or a connection, or to start or signal a program. Linux refuses
//! every other system call as nonexistent, executable memory included; macOS has a profile without
//! rights (Seatbelt). Windows can take only some rights from a running process: it starts no
//! program, and runs no code that it has generated or loaded from elsewhere, but it has the files
//! and the network of its user.
//!
//! Limitation: the child's answer is machine code that the host will run. Bytes that took over the
//! compiler could answer with their own code.

/// Level to which a system confines the process that compiles plugins. The levels are ordered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Confinement {
    /// The process has its limits, and all rights of its user.
    None,
    /// The process starts no programs and runs no generated code. It has the files and the network
    /// of its user.
    Partial,
    /// The process can only compute and answer.
    Full,
}

impl Confinement {
    /// Returns the byte that stands for the level between host and child.
    pub(crate) fn to_byte(self) -> u8 {
        match self {
            Self::None => 0,
            Self::Full => 1,
            Self::Partial => 2,
        }
    }

    /// Returns the level of a byte, [`Confinement::None`] for an unknown one.
    pub(crate) fn from_byte(byte: u8) -> Self {
        match byte {
            1 => Self::Full,
            2 => Self::Partial,
            _ => Self::None,
        }
    }
}

/// Confines all threads of this process, those that exist and those that they start later, and
/// returns the level that the system has reached. Cannot be undone. A system call that another
/// thread has begun still ends, so call it before anything is processed.
pub(crate) fn confine_this_process() -> Confinement {
    filter::apply()
}

#[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]
mod filter {
    use seccompiler::{
        BackendError, BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition,
        SeccompFilter, SeccompRule, TargetArch,
    };

    use super::Confinement;

    /// System calls that are harmless with any arguments: memory, existing threads, time, exit. An
    /// async runtime that exists already waits for events of its own descriptors, and would abort
    /// the process if it could not.
    const ALLOWED: &[libc::c_long] = &[
        libc::SYS_brk,
        libc::SYS_clock_gettime,
        libc::SYS_clock_nanosleep,
        libc::SYS_epoll_pwait,
        #[cfg(target_arch = "x86_64")]
        libc::SYS_epoll_wait,
        libc::SYS_exit,
        libc::SYS_exit_group,
        libc::SYS_futex,
        libc::SYS_getpid,
        libc::SYS_getrandom,
        libc::SYS_gettid,
        libc::SYS_madvise,
        libc::SYS_mremap,
        libc::SYS_munmap,
        libc::SYS_nanosleep,
        libc::SYS_restart_syscall,
        libc::SYS_rseq,
        libc::SYS_rt_sigaction,
        libc::SYS_rt_sigprocmask,
        libc::SYS_rt_sigreturn,
        libc::SYS_sched_getaffinity,
        libc::SYS_sched_yield,
        libc::SYS_set_robust_list,
        libc::SYS_sigaltstack,
    ];

    pub(super) fn apply() -> Confinement {
        // The filter is for threads that exist as well, such as those of an async runtime. It
        // applies to all of them, or the call fails.
        let applied = program().map(|program| seccompiler::apply_filter_all_threads(&program));
        if matches!(applied, Ok(Ok(()))) { Confinement::Full } else { Confinement::None }
    }

    fn program() -> Result<BpfProgram, BackendError> {
        let mut rules: std::collections::BTreeMap<i64, Vec<SeccompRule>> =
            ALLOWED.iter().map(|&call| (call, vec![])).collect();
        rules.extend(with_arguments()?);
        // ENOSYS rather than EPERM: if `clone3`, whose flags cannot be inspected, fails that way,
        // the C library falls back to `clone`, whose flags can.
        let refused = SeccompAction::Errno(u32::try_from(libc::ENOSYS).unwrap_or(1));
        let arch = TargetArch::try_from(std::env::consts::ARCH)?;
        SeccompFilter::new(rules, refused, SeccompAction::Allow, arch)?.try_into()
    }

    /// Returns the system calls that are harmless with certain arguments.
    fn with_arguments() -> Result<Vec<(i64, Vec<SeccompRule>)>, BackendError> {
        let is = |argument, value: libc::c_int| condition(argument, SeccompCmpOp::Eq, value);
        let has = |argument, flag: libc::c_int| condition(argument, masked(flag), flag);
        let has_not = |argument, flag: libc::c_int| condition(argument, masked(flag), 0);
        let own = libc::c_int::try_from(std::process::id()).unwrap_or(0);
        Ok(vec![
            // Standard output and standard error are pipes to the host. Other inherited descriptors
            // are not.
            (libc::SYS_write, vec![rule(vec![is(0, 1)?])?, rule(vec![is(0, 2)?])?]),
            // Private memory that is not executable. The compiler never runs its output.
            (
                libc::SYS_mmap,
                vec![rule(vec![has(3, libc::MAP_ANONYMOUS)?, has_not(2, libc::PROT_EXEC)?])?],
            ),
            (libc::SYS_mprotect, vec![rule(vec![has_not(2, libc::PROT_EXEC)?])?]),
            // Threads, but no processes.
            (libc::SYS_clone, vec![rule(vec![has(0, libc::CLONE_THREAD)?])?]),
            (libc::SYS_prctl, vec![rule(vec![is(0, libc::PR_SET_NAME)?])?]),
            // Used by a process to end itself in a panic.
            (libc::SYS_tgkill, vec![rule(vec![is(0, own)?])?]),
        ])
    }

    fn masked(flag: libc::c_int) -> SeccompCmpOp {
        SeccompCmpOp::MaskedEq(u64::from(flag.unsigned_abs()))
    }

    fn condition(
        argument: u8,
        operator: SeccompCmpOp,
        value: libc::c_int,
    ) -> Result<SeccompCondition, BackendError> {
        let value = u64::from(value.unsigned_abs());
        SeccompCondition::new(argument, SeccompCmpArgLen::Dword, operator, value)
    }

    fn rule(conditions: Vec<SeccompCondition>) -> Result<SeccompRule, BackendError> {
        SeccompRule::new(conditions)
    }
}

#[cfg(target_os = "macos")]
mod filter {
    use super::Confinement;

    pub(super) fn apply() -> Confinement {
        match super::super::macos::confine_process() {
            Ok(()) => Confinement::Full,
            Err(_) => Confinement::None,
        }
    }
}

#[cfg(windows)]
mod filter {
    use super::Confinement;

    pub(super) fn apply() -> Confinement {
        match super::super::windows::restrict_this_process() {
            Ok(()) => Confinement::Partial,
            Err(_) => Confinement::None,
        }
    }
}

#[cfg(not(any(
    windows,
    target_os = "macos",
    all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64"))
)))]
mod filter {
    use super::Confinement;

    pub(super) fn apply() -> Confinement {
        Confinement::None
    }
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests;
