//! Runs blocking file operations off the async threads.
//!
//! Usually each operation is handed to tokio's blocking pool. Work that consists of many very short
//! operations moves there as a whole instead, and its operations then run inline: handing each of
//! them over would cost more than the operation itself.

use std::cell::Cell;
use std::future::Future;

use tokio::runtime::Handle;
use tokio::task::JoinHandle;

use crate::FileError;

thread_local! {
    /// True while this thread runs the work of [`spawn`], so that blocking it delays nothing else.
    static MAY_BLOCK: Cell<bool> = const { Cell::new(false) };
}

/// Runs `work` on a thread of tokio's blocking pool, or inline if there is no runtime or the
/// current thread belongs to [`spawn`]. Dropping the future does not stop work that has begun.
pub(crate) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, FileError> + Send + 'static,
) -> Result<T, FileError> {
    if MAY_BLOCK.get() {
        return work();
    }
    let Ok(runtime) = Handle::try_current() else { return work() };
    // This fails if the runtime is shutting down.
    runtime
        .spawn_blocking(work)
        .await
        .unwrap_or_else(|error| Err(std::io::Error::other(error).into()))
}

/// Runs `work` to its end even if this future is dropped. Returns `None` if it has panicked or the
/// runtime is shutting down.
pub(crate) async fn to_completion<T: Send + 'static>(
    work: impl Future<Output = T> + Send + 'static,
) -> Option<T> {
    match Handle::try_current() {
        Ok(runtime) => runtime.spawn(work).await.ok(),
        Err(_) => Some(work.await),
    }
}

/// Returns whether [`spawn`] can move work to another thread.
pub(crate) fn can_spawn() -> bool {
    !MAY_BLOCK.get() && Handle::try_current().is_ok()
}

/// Runs the future returned by `start` to completion on one thread of tokio's blocking pool.
/// Dropping the handle does not stop it.
///
/// The thread drives nothing else: sockets and timers that the future waits for belong to the
/// runtime of the caller. The future is created on its thread, which is why it need not be `Send`.
///
/// # Panics
/// If called outside of a runtime; see [`can_spawn`].
pub(crate) fn spawn<F: Future<Output: Send + 'static>>(
    start: impl FnOnce() -> F + Send + 'static,
) -> JoinHandle<F::Output> {
    let runtime = Handle::current();
    tokio::task::spawn_blocking(move || {
        let _mark = Mark::set();
        runtime.block_on(start())
    })
}

/// Marks the thread as one that may block. Dropping it removes the mark, also when the work panics,
/// because the thread goes back to the pool.
struct Mark;

impl Mark {
    fn set() -> Self {
        MAY_BLOCK.set(true);
        Self
    }
}

impl Drop for Mark {
    fn drop(&mut self) {
        MAY_BLOCK.set(false);
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    async fn thread_of_a_step() -> thread::ThreadId {
        blocking(|| Ok(thread::current().id())).await.unwrap()
    }

    #[tokio::test]
    async fn steps_of_work_that_was_moved_run_inline_and_others_do_not() {
        let here = thread::current().id();
        assert_ne!(thread_of_a_step().await, here);
        let (there, step) =
            spawn(|| async { (thread::current().id(), thread_of_a_step().await) }).await.unwrap();
        assert_ne!(there, here);
        assert_eq!(there, step);
    }

    #[tokio::test]
    async fn a_thread_that_goes_back_to_the_pool_is_not_marked() {
        let panicked = spawn(|| async { panic!("on purpose") }).await;
        assert!(panicked.is_err());
        for _ in 0..8 {
            assert!(!tokio::task::spawn_blocking(|| MAY_BLOCK.get()).await.unwrap());
        }
    }
}
