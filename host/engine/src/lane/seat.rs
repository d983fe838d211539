//! One call in the busy lane: who has its future, and how it is handed over.
//!
//! The future is in exactly one of three hands: the seat's own, a thread's that polls it, or the caller's who took it
//! back. A caller who wants it while a thread polls it gets it after that poll, which ends at the next tick; one who finds
//! it in the seat has it at once, even if other calls wait for their turns before it.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Wake, Waker};
use std::thread;

use cofferdam_tool::PluginName;

use super::{Job, Shared, Turn};

/// The caller's side of a call in the lane. Dropping it drops the call.
pub(super) struct Seated<T: Send + 'static>(Arc<Seat<T>>);

/// What a caller gets who asks for the call back.
pub(super) enum Recalled<T> {
    /// The call, unfinished.
    Job(Job<T>),
    /// Its end, which came first.
    Done(T),
}

struct Seat<T> {
    lane: Arc<Shared>,
    plugin: PluginName,
    inner: Mutex<Inner<T>>,
}

struct Inner<T> {
    hands: Hands<T>,
    wish: Wish,
    /// The caller's, for when the call has ended or can be handed over.
    caller: Option<Waker>,
}

/// Who has the call.
enum Hands<T> {
    /// In the queue of the lane.
    Queued(Job<T>),
    /// Nowhere: it waits to be woken.
    Waiting(Job<T>),
    /// With a thread. `woken` says that it wants another turn after this one.
    Polled { woken: bool },
    /// At its end, which may be a panic.
    Ended(thread::Result<T>),
    /// With its caller, or dropped.
    Gone,
}

/// What the caller wants done with a call that a thread has.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Wish {
    GoOn,
    HandOver,
    Drop,
}

impl<T: Send + 'static> Seated<T> {
    /// Puts `job` into the queue of `lane`.
    pub(super) fn take(lane: &Arc<Shared>, plugin: &PluginName, job: Job<T>) -> Self {
        let inner = Inner { hands: Hands::Queued(job), wish: Wish::GoOn, caller: None };
        let seat =
            Arc::new(Seat { lane: Arc::clone(lane), plugin: plugin.clone(), inner: Mutex::new(inner) });
        lane.push_and_wake(plugin, Arc::clone(&seat) as Arc<dyn Turn>);
        Self(seat)
    }

    /// Ready when the call has ended. A panic of the call goes on here.
    pub(super) fn poll_done(&mut self, cx: &mut Context<'_>) -> Poll<T> {
        let mut inner = self.0.lock();
        match inner.hands.take_ended() {
            Some(ended) => {
                drop(inner);
                Poll::Ready(ended.unwrap_or_else(|panic| resume_unwind(panic)))
            }
            None => {
                inner.caller = Some(cx.waker().clone());
                Poll::Pending
            }
        }
    }

    /// Ready when no thread has the call any more.
    pub(super) fn poll_recall(&mut self, cx: &mut Context<'_>) -> Poll<Recalled<T>> {
        let mut inner = self.0.lock();
        if let Some(job) = inner.hands.take_job() {
            return Poll::Ready(Recalled::Job(job));
        }
        if let Some(ended) = inner.hands.take_ended() {
            drop(inner);
            return Poll::Ready(Recalled::Done(ended.unwrap_or_else(|panic| resume_unwind(panic))));
        }
        // Together, or the thread could be done in between and wake nobody.
        inner.wish = Wish::HandOver;
        inner.caller = Some(cx.waker().clone());
        Poll::Pending
    }
}

impl<T: Send + 'static> Drop for Seated<T> {
    fn drop(&mut self) {
        let mut inner = self.0.lock();
        inner.wish = Wish::Drop;
        let job = inner.hands.take_job();
        let ended = inner.hands.take_ended();
        // What they hold is not dropped under the lock: it may wake this very seat.
        drop(inner);
        drop((job, ended));
    }
}

impl<T> Hands<T> {
    fn take_job(&mut self) -> Option<Job<T>> {
        match std::mem::replace(self, Self::Gone) {
            Self::Queued(job) | Self::Waiting(job) => Some(job),
            other => {
                *self = other;
                None
            }
        }
    }

    fn take_ended(&mut self) -> Option<thread::Result<T>> {
        match std::mem::replace(self, Self::Gone) {
            Self::Ended(ended) => Some(ended),
            other => {
                *self = other;
                None
            }
        }
    }
}

impl<T> Seat<T> {
    fn lock(&self) -> MutexGuard<'_, Inner<T>> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T: Send + 'static> Turn for Seat<T> {
    fn take(self: Arc<Self>) {
        let mut job = {
            let mut inner = self.lock();
            // The queue may hold a seat whose call has been taken back.
            let Some(job) = inner.hands.take_job() else { return };
            inner.hands = Hands::Polled { woken: false };
            job
        };
        let waker = Waker::from(Arc::clone(&self));
        let mut cx = Context::from_waker(&waker);
        let polled = catch_unwind(AssertUnwindSafe(|| job.as_mut().poll(&mut cx)));
        let mut inner = self.lock();
        let woken = matches!(inner.hands, Hands::Polled { woken: true });
        let (hands, left) = match (polled, inner.wish) {
            (Ok(Poll::Pending), Wish::GoOn) if woken => (Hands::Queued(job), None),
            (Ok(Poll::Pending), Wish::GoOn | Wish::HandOver) => (Hands::Waiting(job), None),
            (Ok(Poll::Pending), Wish::Drop) => (Hands::Gone, Some((job, None))),
            (polled, Wish::Drop) => (Hands::Gone, Some((job, Some(polled)))),
            (Ok(Poll::Ready(done)), _) => (Hands::Ended(Ok(done)), Some((job, None))),
            (Err(panic), _) => (Hands::Ended(Err(panic)), Some((job, None))),
        };
        let queued = matches!(hands, Hands::Queued(_));
        let concerns_caller = matches!(hands, Hands::Ended(_)) || inner.wish == Wish::HandOver;
        inner.hands = hands;
        let caller = if concerns_caller { inner.caller.take() } else { None };
        drop(inner);
        if queued {
            // This thread looks at the queue next, so that no other has to be woken.
            self.lane.push(&self.plugin, Arc::clone(&self) as Arc<dyn Turn>);
        }
        // Not under the lock: what the call holds may wake this very seat.
        drop(left);
        if let Some(caller) = caller {
            caller.wake();
        }
    }
}

impl<T: Send + 'static> Wake for Seat<T> {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        let mut inner = self.lock();
        match &mut inner.hands {
            Hands::Polled { woken } => *woken = true,
            Hands::Waiting(_) => {
                if let Some(job) = inner.hands.take_job() {
                    inner.hands = Hands::Queued(job);
                    drop(inner);
                    self.lane.push_and_wake(&self.plugin, Arc::clone(self) as Arc<dyn Turn>);
                }
            }
            Hands::Queued(_) | Hands::Ended(_) | Hands::Gone => {}
        }
    }
}
