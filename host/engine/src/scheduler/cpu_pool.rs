//! Threads for guests that compute.
//!
//! A call starts on its caller's thread. Most calls end within microseconds, and moving them to
//! another thread would take longer than the call. A guest that computes, however, would occupy
//! that thread from one epoch tick to the next, and a few of them would occupy all threads of the
//! embedding runtime. So a call whose [`CpuMeter`] reports more than a little CPU time continues in
//! this pool, which has one thread per core and polls each call from tick to tick. After each poll
//! the next plugin gets its turn ([`FairQueue`]): a plugin with many computing calls gets no more
//! CPU time than a plugin with one. If the last call of a tool computed for long, its next call
//! starts in the pool.
//!
//! * **The caller's task waits** for the interrupt and for the result. To stop a call it sets the
//!   flag of the meter: the pool polls that call next, and it ends there. Dropping the caller's
//!   future does the same.
//! * **A call that waits in a host function is not queued**, wherever it started.
//! * **The threads yield to all others.** On Linux they have a lower priority, so that a thread
//!   that serves a short call or a cancellation preempts them.
//! * **Host functions called in the pool have a separate runtime.** A thread inherits the priority
//!   of the thread that starts it: with the embedder's runtime, a file operation could leave that
//!   runtime with permanently slow threads. It also makes the pool independent of that runtime's
//!   shutdown.
//!
//! The first computing call starts the threads and the runtime. If they cannot be started, calls
//! stay on their callers' threads.

mod fair_queue;

use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::{Pin, pin};
use std::sync::{Arc, OnceLock};
use std::task::Poll;
use std::thread;
use std::time::Duration;

use async_task::{Runnable, ScheduleInfo, Task, WithInfo};
use cofferdam_tool::PluginName;
use parking_lot::{Condvar, Mutex};
use tokio::runtime::{Builder, Handle, Runtime};

use self::fair_queue::FairQueue;
use crate::scheduler::cpu_meter::CpuMeter;

/// Nice value of the threads. At 10 they have about a tenth of the weight of other threads: they
/// are preempted at once, and still make progress while other programs compute.
#[cfg(target_os = "linux")]
const NICENESS: i32 = 10;

/// Time without a call after which a thread calls the idle hook.
const IDLE: Duration = Duration::from_secs(1);

/// Call in progress: a future that owns everything it needs. After [`CpuMeter::stop`] it ends at
/// its next poll.
pub(crate) type Job<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// Threads of one engine for calls that compute.
pub(crate) struct CpuPool {
    shared: Arc<PoolShared>,
    /// Runtime of host functions; `None` if the pool could not be started.
    io: OnceLock<Option<Runtime>>,
}

struct PoolShared {
    idle_hook: Option<fn()>,
    queue: Mutex<Queue>,
    /// Signalled when a call is queued and when the pool closes.
    changed: Condvar,
}

#[derive(Default)]
struct Queue {
    calls: FairQueue<Runnable<CallInfo>>,
    is_closed: bool,
}

/// State of a call in the pool.
struct CallInfo {
    plugin: PluginName,
    meter: Arc<CpuMeter>,
}

/// Call in the pool. Dropping it stops the call.
struct PooledCall<T> {
    task: Task<T, CallInfo>,
    meter: Arc<CpuMeter>,
}

/// Next action of a pool thread.
enum Next {
    Call(Runnable<CallInfo>),
    /// No call for [`IDLE`].
    Idle,
    Closed,
}

impl CpuPool {
    /// Creates a pool without threads. Each thread calls `idle_hook` once it has had no call for a
    /// second after running some.
    pub(crate) fn new(idle_hook: Option<fn()>) -> Self {
        let shared = PoolShared { idle_hook, queue: Mutex::default(), changed: Condvar::new() };
        Self { shared: Arc::new(shared), io: OnceLock::new() }
    }

    /// Runs a job to its end: on this thread, and in the pool once `meter` reports that it
    /// computes, or from the start if `starts_in_pool`. If `interrupt` is ready first, the job is
    /// stopped, and its result is returned together with that of the interrupt.
    pub(crate) async fn run<T: Send + 'static, I>(
        &self,
        plugin: &PluginName,
        mut job: Job<T>,
        meter: &Arc<CpuMeter>,
        starts_in_pool: bool,
        interrupt: impl Future<Output = I>,
    ) -> (T, Option<I>) {
        let mut interrupt = pin!(interrupt);
        if !(starts_in_pool && self.start()) {
            // Most jobs end at their first poll, so the interrupt, which has a timer, is polled
            // only after that.
            let mut has_begun = false;
            // Resolves to `None` when the job should move to the pool.
            let inline = poll_fn(|cx| {
                if std::mem::replace(&mut has_begun, true)
                    && let Poll::Ready(reason) = interrupt.as_mut().poll(cx)
                {
                    return Poll::Ready(Some(Err(reason)));
                }
                match job.as_mut().poll(cx) {
                    Poll::Ready(result) => Poll::Ready(Some(Ok(result))),
                    Poll::Pending if meter.is_computing() && self.start() => Poll::Ready(None),
                    Poll::Pending => interrupt.as_mut().poll(cx).map(|reason| Some(Err(reason))),
                }
            });
            match inline.await {
                Some(Ok(result)) => return (result, None),
                Some(Err(reason)) => {
                    meter.stop();
                    return (job.await, Some(reason));
                }
                None => {}
            }
        }
        let mut pooled = self.spawn(plugin, job, meter);
        let ended = poll_fn(|cx| match interrupt.as_mut().poll(cx) {
            Poll::Ready(reason) => Poll::Ready(Err(reason)),
            Poll::Pending => Pin::new(&mut pooled.task).poll(cx).map(Ok),
        });
        match ended.await {
            Ok(result) => (result, None),
            Err(reason) => {
                pooled.meter.stop();
                ((&mut pooled.task).await, Some(reason))
            }
        }
    }

    fn spawn<T: Send + 'static>(
        &self,
        plugin: &PluginName,
        mut job: Job<T>,
        meter: &Arc<CpuMeter>,
    ) -> PooledCall<T> {
        let info = CallInfo { plugin: plugin.clone(), meter: Arc::clone(meter) };
        let stopped = Arc::clone(meter);
        // Wakes a job that waits in a host function so that it can be stopped.
        let job = poll_fn(move |cx| {
            stopped.wake_when_stopped(cx.waker());
            job.as_mut().poll(cx)
        });
        let shared = Arc::clone(&self.shared);
        let schedule =
            WithInfo(move |call, info: ScheduleInfo| shared.push(call, info.woken_while_running));
        let (call, task) = async_task::Builder::new()
            .metadata(info)
            // A panic continues in the caller's task.
            .propagate_panic(true)
            .spawn(|_| job, schedule);
        call.schedule();
        PooledCall { task, meter: Arc::clone(meter) }
    }

    /// Starts the threads if they are not running. Returns false if that is impossible.
    fn start(&self) -> bool {
        self.io.get_or_init(|| start(&self.shared).ok()).is_some()
    }
}

impl<T> Drop for PooledCall<T> {
    fn drop(&mut self) {
        // A canceled task is dropped the next time it is polled, which is before all others.
        self.meter.stop();
    }
}

impl Drop for CpuPool {
    fn drop(&mut self) {
        let mut queue = self.shared.queue.lock();
        queue.is_closed = true;
        let abandoned = std::mem::take(&mut queue.calls);
        drop(queue);
        drop(abandoned);
        self.shared.changed.notify_all();
        // Waiting for the runtime's threads is forbidden within another runtime, and one of them
        // may be blocked.
        if let Some(io) = self.io.take().flatten() {
            io.shutdown_background();
        }
    }
}

/// Starts the runtime and the threads. One thread is enough to succeed.
fn start(shared: &Arc<PoolShared>) -> std::io::Result<Runtime> {
    let io = Builder::new_multi_thread()
        .worker_threads(1)
        .thread_name("cofferdam-cpu-io")
        .enable_all()
        .build()?;
    let cores = thread::available_parallelism().map_or(1, usize::from);
    for started in 0..cores {
        let (shared, handle) = (Arc::clone(shared), io.handle().clone());
        let spawned = thread::Builder::new()
            .name("cofferdam-cpu".to_owned())
            .spawn(move || serve(&shared, &handle));
        match spawned {
            Ok(_) => {}
            Err(error) if started == 0 => {
                io.shutdown_background();
                return Err(error);
            }
            Err(_) => break,
        }
    }
    Ok(io)
}

/// Polls calls until the pool closes.
fn serve(shared: &PoolShared, io: &Handle) {
    lower_priority();
    let _entered = io.enter();
    let mut has_run = false;
    loop {
        match shared.next(has_run) {
            Next::Call(call) => {
                // The task forwards a panic of the call. The remaining ones occur while an
                // abandoned call is dropped.
                let _ = catch_unwind(AssertUnwindSafe(|| call.run()));
                has_run = true;
            }
            Next::Idle => {
                has_run = false;
                if let Some(hook) = shared.idle_hook {
                    hook();
                }
            }
            Next::Closed => return,
        }
    }
}

/// Lowers the priority of this thread. If that fails, short calls wait a little longer on a busy
/// machine.
fn lower_priority() {
    // On other systems this would change the priority of the whole process.
    #[cfg(target_os = "linux")]
    let _ = rustix::process::setpriority_process(None, NICENESS);
}

impl PoolShared {
    /// Queues a call. A call that was woken while a thread polled it does not wake another thread:
    /// that thread checks the queue next.
    fn push(&self, call: Runnable<CallInfo>, is_polled: bool) {
        let mut queue = self.queue.lock();
        if queue.is_closed {
            drop(queue);
            // Dropped outside the lock, because dropping a call may wake others.
            return drop(call);
        }
        let plugin = call.metadata().plugin.clone();
        queue.calls.push(plugin, call);
        drop(queue);
        if !is_polled {
            self.changed.notify_one();
        }
    }

    /// Waits for a call, at most [`IDLE`] if the thread `has_run` one since it was idle.
    fn next(&self, has_run: bool) -> Next {
        let mut queue = self.queue.lock();
        let mut is_idle = false;
        loop {
            if queue.is_closed {
                return Next::Closed;
            }
            if let Some(call) = queue.calls.pop(|call| call.metadata().meter.is_stopped()) {
                return Next::Call(call);
            }
            if is_idle {
                return Next::Idle;
            }
            if has_run {
                is_idle = self.changed.wait_for(&mut queue, IDLE).timed_out();
            } else {
                self.changed.wait(&mut queue);
            }
        }
    }
}

#[cfg(test)]
mod tests;
