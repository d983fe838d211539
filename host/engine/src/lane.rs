//! Which thread runs a guest.
//!
//! A call starts *in place*: its future is polled by the task of its caller, on a thread of the embedding runtime. Most
//! calls are done within microseconds, and a thread hop would cost more than the call.
//!
//! A guest that computes would hold that thread from one tick of the epoch clock to the next, and a few of them would
//! hold all threads that answer anyone. So when the epoch callback finds that a call has used more than a little CPU time
//! ([`Pulse::is_busy`]), the rest of the call moves to the *busy lane*: as many threads of our own as the machine has
//! cores. There the call's future is polled from tick to tick, and after each tick the next plugin has its turn
//! ([`Turns`]), so that a plugin with many busy calls gets no more of the machine than one with a single call. A call
//! whose tool was busy last time starts there.
//!
//! * **The caller's task stays where it was.** It waits for the cancellation, the wall clock and the result. When one of the
//!   first two comes it takes the call back out of the lane (between two ticks at the latest, see [`seat`]) and ends it.
//!   Dropping the caller's future drops the call in the same way.
//! * **A call that waits in a host function is in no queue** and takes no turns, wherever it started.
//! * **The threads yield to everyone else.** On Linux they have a lower priority, so that a thread which serves a short
//!   call or a cancellation preempts them. Elsewhere the system's own fairness has to do.
//! * **Host functions that are called in the lane have a runtime of the lane's own.** A thread inherits the
//!   priority of the one that starts it: with the embedder's runtime, a file operation in the lane could leave it with
//!   slow threads for good. It also frees the lane from the embedder shutting its runtime down.
//!
//! Threads and runtime are started by the first busy call. Where they cannot be started, calls stay in place.

mod seat;

use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::{Pin, pin};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::task::Poll;
use std::thread;
use std::time::Duration;

use cofferdam_tool::PluginName;
use tokio::runtime::{Builder, Handle, Runtime};

use self::seat::{Recalled, Seated};
use crate::pulse::Pulse;
use crate::turns::Turns;

/// How much nicer than others the threads of the lane are, on a scale to 19. At 10 they have about a tenth of the weight
/// of a thread that is not: little enough to be preempted at once, and enough to get on while something else
/// on the machine computes as well.
#[cfg(target_os = "linux")]
const NICENESS: i32 = 10;

/// Time without a call after which a thread of the lane is idle.
const IDLE: Duration = Duration::from_secs(1);

/// A call on its way: a future that owns everything it needs.
pub(crate) type Job<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// The busy lane of one engine.
pub(crate) struct Lane {
    shared: Arc<Shared>,
    /// What host functions run on; `None` if the lane could not be opened.
    io: OnceLock<Option<Runtime>>,
}

struct Shared {
    /// Called by a thread of the lane that has had no call for a second.
    idle_hook: Option<fn()>,
    queue: Mutex<Queue>,
    /// Signalled when the queue gets an item and when the lane closes.
    changed: Condvar,
}

#[derive(Default)]
struct Queue {
    turns: Turns<Arc<dyn Turn>>,
    closed: bool,
}

/// A call in the lane as its threads see it.
trait Turn: Send + Sync {
    /// Polls the call once.
    fn take(self: Arc<Self>);
}

/// Why nobody polls a call any more.
enum Step<T, I> {
    Done(T),
    Interrupted(I),
}

impl Lane {
    /// A lane without threads: they come with the first busy call.
    pub(crate) fn new(idle_hook: Option<fn()>) -> Self {
        let shared = Shared { idle_hook, queue: Mutex::default(), changed: Condvar::new() };
        Self { shared: Arc::new(shared), io: OnceLock::new() }
    }

    /// Runs `job` to its end, beginning at once. When `interrupt` is ready before that, `pulse` tells the job to stop, and the answer has
    /// both: what the job made of it, and what the interrupt was. A job that is told to stop has to be ready at its next
    /// poll.
    ///
    /// With `starts_busy` no part of the job runs in place.
    pub(crate) async fn drive<T: Send + 'static, I>(
        &self,
        plugin: &PluginName,
        mut job: Job<T>,
        pulse: &Pulse,
        starts_busy: bool,
        interrupt: impl Future<Output = I>,
    ) -> (T, Option<I>) {
        let mut interrupt = pin!(interrupt);
        if !(starts_busy && self.open()) {
            // Most jobs are done at their first poll: then nobody needs to listen for the interrupt, which has a timer.
            let mut has_begun = false;
            // `None` says that the call is busy.
            let in_place = poll_fn(|cx| {
                if std::mem::replace(&mut has_begun, true)
                    && let Poll::Ready(why) = interrupt.as_mut().poll(cx)
                {
                    return Poll::Ready(Some(Step::Interrupted(why)));
                }
                match job.as_mut().poll(cx) {
                    Poll::Ready(done) => Poll::Ready(Some(Step::Done(done))),
                    Poll::Pending if pulse.is_busy() && self.open() => Poll::Ready(None),
                    Poll::Pending => interrupt.as_mut().poll(cx).map(|why| Some(Step::Interrupted(why))),
                }
            });
            match in_place.await {
                Some(Step::Done(done)) => return (done, None),
                Some(Step::Interrupted(why)) => {
                    pulse.stop();
                    return (job.await, Some(why));
                }
                None => {}
            }
        }
        let mut seated = Seated::take(&self.shared, plugin, job);
        let in_lane = poll_fn(|cx| match interrupt.as_mut().poll(cx) {
            Poll::Ready(why) => Poll::Ready(Step::Interrupted(why)),
            Poll::Pending => seated.poll_done(cx).map(Step::Done),
        });
        match in_lane.await {
            Step::Done(done) => (done, None),
            Step::Interrupted(why) => {
                pulse.stop();
                match poll_fn(|cx| seated.poll_recall(cx)).await {
                    Recalled::Job(job) => (job.await, Some(why)),
                    Recalled::Done(done) => (done, Some(why)),
                }
            }
        }
    }

    /// Starts the threads if they are not there. Whether there are any.
    fn open(&self) -> bool {
        self.io.get_or_init(|| start(&self.shared).ok()).is_some()
    }
}

impl Drop for Lane {
    fn drop(&mut self) {
        let mut queue = self.shared.lock();
        queue.closed = true;
        let left = std::mem::take(&mut queue.turns);
        drop(queue);
        drop(left);
        self.shared.changed.notify_all();
        // Waiting for the runtime's threads is forbidden within another runtime, and one of them may be stuck.
        if let Some(io) = self.io.take().flatten() {
            io.shutdown_background();
        }
    }
}

/// Starts what the lane runs on. One thread is enough to go on with.
fn start(shared: &Arc<Shared>) -> std::io::Result<Runtime> {
    let io = Builder::new_multi_thread()
        .worker_threads(1)
        .thread_name("cofferdam-busy-io")
        .enable_all()
        .build()?;
    let cores = thread::available_parallelism().map_or(1, usize::from);
    for started in 0..cores {
        let (shared, handle) = (Arc::clone(shared), io.handle().clone());
        let spawned =
            thread::Builder::new().name("cofferdam-busy".to_owned()).spawn(move || serve(&shared, &handle));
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

/// The life of one thread of the lane.
fn serve(shared: &Shared, io: &Handle) {
    lower_priority();
    let _entered = io.enter();
    let mut has_run = false;
    loop {
        match shared.next(has_run) {
            Next::Turn(turn) => {
                // A panic of a poll goes to the call's caller. One that is left is in dropping what nobody waits for.
                let _ = catch_unwind(AssertUnwindSafe(|| turn.take()));
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

/// Without the right to do so everything works, and short calls wait a little longer on a busy machine.
fn lower_priority() {
    // On Linux alone this is the priority of one thread; elsewhere it would be that of the whole process.
    #[cfg(target_os = "linux")]
    let _ = rustix::process::setpriority_process(None, NICENESS);
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Queues a call. Its seat refers to the lane, so that none may stay in a queue that nobody looks at.
    fn push(&self, plugin: &PluginName, turn: Arc<dyn Turn>) {
        let mut queue = self.lock();
        if !queue.closed {
            queue.turns.push(plugin, turn);
        }
    }

    /// Queues a call that was in no thread's hands, and wakes a thread for it.
    fn push_and_wake(&self, plugin: &PluginName, turn: Arc<dyn Turn>) {
        self.push(plugin, turn);
        self.changed.notify_one();
    }

    /// Waits for a call. A thread that `has_run` calls is told when none has come for a second.
    fn next(&self, has_run: bool) -> Next {
        let mut queue = self.lock();
        let mut is_idle = false;
        loop {
            if queue.closed {
                return Next::Closed;
            }
            if let Some(turn) = queue.turns.pop() {
                return Next::Turn(turn);
            }
            if is_idle {
                return Next::Idle;
            }
            queue = if has_run {
                let waited = self.changed.wait_timeout(queue, IDLE);
                let (queue, timeout) = waited.unwrap_or_else(PoisonError::into_inner);
                is_idle = timeout.timed_out();
                queue
            } else {
                self.changed.wait(queue).unwrap_or_else(PoisonError::into_inner)
            };
        }
    }
}

/// Next work of a thread of the lane.
enum Next {
    /// A call.
    Turn(Arc<dyn Turn>),
    /// None for a second.
    Idle,
    /// None any more: the lane is closed.
    Closed,
}

#[cfg(test)]
mod tests;
