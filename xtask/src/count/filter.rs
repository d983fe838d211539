//! Keeps the counted program from using the vDSO, the page of system calls that the kernel maps
//! into every process.
//!
//! Valgrind hides that page and removes it from the auxiliary vector of the process. rustix,
//! however, asks the kernel for the vector (`prctl(PR_GET_AUXV)`, Linux 6.4), reads the hidden page
//! and crashes. If the kernel rejects the request, as older kernels do, rustix reads the vector
//! that Valgrind has changed.

use std::thread;

use anyhow::anyhow;

/// Runs `work` in a thread whose child processes cannot make that request.
pub(super) fn without_auxv<T: Send>(
    work: impl FnOnce() -> anyhow::Result<T> + Send,
) -> anyhow::Result<T> {
    thread::scope(|scope| {
        let thread = scope.spawn(|| refuse().and_then(|()| work()));
        thread.join().map_err(|_| anyhow!("the counting has panicked"))?
    })
}

#[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]
fn refuse() -> anyhow::Result<()> {
    use seccompiler::{
        BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
        SeccompRule, TargetArch,
    };

    const PR_GET_AUXV: u64 = 0x4155_5856;
    let asks = SeccompCondition::new(0, SeccompCmpArgLen::Dword, SeccompCmpOp::Eq, PR_GET_AUXV)?;
    let rules = [(libc::SYS_prctl, vec![SeccompRule::new(vec![asks])?])].into_iter().collect();
    let refused = SeccompAction::Errno(u32::try_from(libc::EINVAL)?);
    let arch = TargetArch::try_from(std::env::consts::ARCH)?;
    let filter = SeccompFilter::new(rules, SeccompAction::Allow, refused, arch)?;
    let program: BpfProgram = filter.try_into()?;
    Ok(seccompiler::apply_filter(&program)?)
}

#[cfg(not(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64"))))]
fn refuse() -> anyhow::Result<()> {
    Ok(())
}
