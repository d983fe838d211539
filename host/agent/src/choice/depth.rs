//! How deep auto-invoked calls are in one another (`CHOICE-13`).

tokio::task_local! {
    static DEPTH: usize;
}

/// In how many auto-invoked calls the running task is. A task that was spawned in one is in none of
/// them.
#[must_use]
pub fn depth() -> usize {
    DEPTH.try_with(|depth| *depth).unwrap_or_default()
}

/// Runs an auto-invoked call: whatever it awaits is one call deeper.
pub fn nested<F: Future>(call: F) -> impl Future<Output = F::Output> {
    DEPTH.scope(depth().saturating_add(1), call)
}
