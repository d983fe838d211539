//! Takes everything away from the compile child that compiling does not need.
//!
//! The child works on hostile bytes. If they took over the compiler, they would find a process that
//! can compute, allocate and write to the pipes that it was given, within its limits, and nothing
//! else: every other system call answers that there is no such call. So there is no way to open a
//! file or a connection, to start a program or signal one, to map a file or to make memory
//! executable; and nothing that is started could gain privileges.
//!
//! Limits of this: the child's answer is machine code that the host will run. Bytes that took over
//! the compiler could answer with code of their own.

/// Confines the calling thread, and every thread that it starts from here on. Cannot be undone.
///
/// # Errors
/// When the system offers no such confinement. The process is then as free as it was.
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

    /// Calls that are harmless with any arguments: memory, threads that exist, time, the end.
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
        // "No such call" and not "not permitted": the C library then takes the older call `clone`,
        // whose flags can be looked at, when it is refused `clone3`, whose flags cannot.
        let refused = SeccompAction::Errno(u32::try_from(libc::ENOSYS).unwrap_or(1));
        let arch = TargetArch::try_from(std::env::consts::ARCH)?;
        SeccompFilter::new(rules, refused, SeccompAction::Allow, arch)?.try_into()
    }

    /// Calls that are harmless with some arguments.
    fn with_arguments() -> std::result::Result<Vec<(i64, Vec<SeccompRule>)>, BackendError> {
        let is = |argument, value: libc::c_int| condition(argument, SeccompCmpOp::Eq, value);
        let has = |argument, flag: libc::c_int| condition(argument, masked(flag), flag);
        let has_not = |argument, flag: libc::c_int| condition(argument, masked(flag), 0);
        let own = libc::c_int::try_from(std::process::id()).unwrap_or(0);
        Ok(vec![
            // Standard output and standard error are pipes of the host's. Whatever else may have
            // been inherited is not.
            (libc::SYS_write, vec![rule(vec![is(0, 1)?])?, rule(vec![is(0, 2)?])?]),
            // Memory of its own that is not executable. The compiler never runs what it compiles.
            (
                libc::SYS_mmap,
                vec![rule(vec![has(3, libc::MAP_ANONYMOUS)?, has_not(2, libc::PROT_EXEC)?])?],
            ),
            (libc::SYS_mprotect, vec![rule(vec![has_not(2, libc::PROT_EXEC)?])?]),
            // Threads and no processes.
            (libc::SYS_clone, vec![rule(vec![has(0, libc::CLONE_THREAD)?])?]),
            (libc::SYS_prctl, vec![rule(vec![is(0, libc::PR_SET_NAME)?])?]),
            // How a process ends itself in a panic.
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
