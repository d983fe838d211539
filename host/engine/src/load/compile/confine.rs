//! Removes all rights from the compile child that compiling does not need.
//!
//! The child processes hostile bytes. If they took over the compiler, they would find a process
//! that can compute, allocate and write to its pipes, within its limits, and nothing else: every
//! other system call fails as nonexistent. So there is no way to open a file or a connection, to
//! start or signal a program, to map a file or to make memory executable; and no started program
//! could gain privileges.
//!
//! Limitation: the child's answer is machine code that the host will run. Bytes that took over the
//! compiler could answer with their own code.

/// Confines the calling thread and all threads that it starts later. Cannot be undone.
///
/// # Errors
/// If the system does not support such confinement. The process then keeps all its rights.
pub(super) fn confine_this_thread() -> std::io::Result<()> {
    filter::apply()
}

#[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]
mod filter {
    use std::io::{Error, Result};

    use seccompiler::{
        BackendError, BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition,
        SeccompFilter, SeccompRule, TargetArch,
    };

    /// System calls that are harmless with any arguments: memory, existing threads, time, exit.
    const ALLOWED: &[libc::c_long] = &[
        libc::SYS_brk,
        libc::SYS_clock_gettime,
        libc::SYS_clock_nanosleep,
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

    pub(super) fn apply() -> Result<()> {
        let program = program().map_err(Error::other)?;
        seccompiler::apply_filter(&program).map_err(Error::other)
    }

    fn program() -> std::result::Result<BpfProgram, BackendError> {
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
    fn with_arguments() -> std::result::Result<Vec<(i64, Vec<SeccompRule>)>, BackendError> {
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
    ) -> std::result::Result<SeccompCondition, BackendError> {
        let value = u64::from(value.unsigned_abs());
        SeccompCondition::new(argument, SeccompCmpArgLen::Dword, operator, value)
    }

    fn rule(conditions: Vec<SeccompCondition>) -> std::result::Result<SeccompRule, BackendError> {
        SeccompRule::new(conditions)
    }
}

#[cfg(not(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64"))))]
mod filter {
    pub(super) fn apply() -> std::io::Result<()> {
        Err(std::io::ErrorKind::Unsupported.into())
    }
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests;
