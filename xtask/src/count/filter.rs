//! What is counted must not look for the page of system calls that the kernel maps into every
//! process.
//!
//! The counter takes that page away, and says so where programs used to look. rustix asks the
//! kernel itself where it is (`prctl(PR_GET_AUXV)`, Linux 6.4), reads there, and dies. Refused that
//! question, as by an older kernel, it reads what the counter shows it.

use std::thread;

use anyhow::anyhow;

/// Does `work` in a thread whose child processes are refused that question.
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
