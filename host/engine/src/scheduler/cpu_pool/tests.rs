use std::sync::atomic::{AtomicU32, Ordering};
use std::task::Context;
use std::time::{Duration, Instant};

use tokio::sync::oneshot;

use super::*;

/// Generous timeout for assertions that something does not hang.
const LONG: Duration = Duration::from_secs(10);

fn name(plugin: &str) -> PluginName {
    PluginName::new(plugin).unwrap()
}

/// Increments a counter for its lifetime.
struct Alive(Arc<AtomicU32>);

impl Alive {
    fn new(counter: &Arc<AtomicU32>) -> Self {
        counter.fetch_add(1, Ordering::SeqCst);
        Self(Arc::clone(counter))
    }
}

impl Drop for Alive {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Creates a job that computes from tick to tick until `turns` ticks have passed or it is stopped.
/// Returns the name of the thread that it ended in.
fn computes(meter: &Arc<CpuMeter>, turns: u32, alive: &Arc<AtomicU32>) -> Job<Option<String>> {
    let (meter, alive) = (Arc::clone(meter), Alive::new(alive));
    let mut turn = 0;
    Box::pin(poll_fn(move |cx: &mut Context<'_>| {
        let _ = &alive;
        if meter.is_stopped() {
            return Poll::Ready(None);
        }
        turn += 1;
        if turn > turns {
            return Poll::Ready(Some(thread::current().name().unwrap_or("").to_owned()));
        }
        meter.measure(|| {
            let started = Instant::now();
            while started.elapsed() < Duration::from_millis(5) {
                std::hint::black_box(());
            }
            meter.check(u64::MAX).unwrap();
        });
        cx.waker().wake_by_ref();
        Poll::Pending
    }))
}

fn until_gone(alive: &AtomicU32) -> bool {
    let started = Instant::now();
    while alive.load(Ordering::SeqCst) > 0 && started.elapsed() < LONG {
        thread::sleep(Duration::from_millis(1));
    }
    alive.load(Ordering::SeqCst) == 0
}

#[tokio::test]
async fn a_job_that_computes_ends_in_the_pool_and_another_inline() {
    let (pool, alive) = (CpuPool::new(None), Arc::default());
    for (turns, ends_in_pool) in [(0, false), (20, true)] {
        let meter = Arc::new(CpuMeter::default());
        let job = computes(&meter, turns, &alive);
        let (ended, _) =
            pool.run(&name("a"), job, &meter, false, std::future::pending::<()>()).await;
        assert_eq!(ended.unwrap() == "cofferdam-cpu", ends_in_pool);
    }
    assert!(until_gone(&alive));
}

#[tokio::test]
async fn a_job_can_be_interrupted_although_the_pool_is_full() {
    let (pool, alive) = (Arc::new(CpuPool::new(None)), Arc::default());
    let mut calls = tokio::task::JoinSet::new();
    for _ in 0..16 {
        let (pool, meter) = (Arc::clone(&pool), Arc::new(CpuMeter::default()));
        let job = computes(&meter, u32::MAX, &alive);
        let interrupt = tokio::time::sleep(Duration::from_millis(100));
        calls.spawn(async move { pool.run(&name("a"), job, &meter, true, interrupt).await });
    }
    let started = Instant::now();
    while let Some(ended) = calls.join_next().await {
        assert_eq!(ended.unwrap(), (None, Some(())));
    }
    assert!(started.elapsed() < LONG);
    assert!(until_gone(&alive));
}

#[tokio::test]
async fn dropping_the_future_drops_the_job_wherever_it_is() {
    let (pool, alive) = (CpuPool::new(None), Arc::default());
    for turns in [0, u32::MAX] {
        let meter = Arc::new(CpuMeter::default());
        let job: Job<_> = if turns == 0 {
            let alive = Alive::new(&alive);
            Box::pin(async move {
                std::future::pending::<()>().await;
                drop(alive);
                None
            })
        } else {
            computes(&meter, turns, &alive)
        };
        let plugin = name("a");
        let driven = pool.run(&plugin, job, &meter, true, std::future::pending::<()>());
        assert!(tokio::time::timeout(Duration::from_millis(50), driven).await.is_err());
        assert!(until_gone(&alive));
    }
}

#[tokio::test]
async fn a_panic_in_the_pool_reaches_the_caller() {
    let pool = Arc::new(CpuPool::new(None));
    let driven = tokio::spawn({
        let pool = Arc::clone(&pool);
        async move {
            let job: Job<()> = Box::pin(async { panic!("of the job") });
            pool.run(&name("a"), job, &Arc::default(), true, std::future::pending::<()>()).await
        }
    });
    assert!(driven.await.unwrap_err().is_panic());
    let job: Job<_> = Box::pin(async { 7 });
    let meter = Arc::default();
    assert_eq!(pool.run(&name("a"), job, &meter, true, std::future::pending::<()>()).await.0, 7);
}

#[tokio::test]
async fn a_job_that_waits_is_woken_by_other_threads_and_by_timers_of_the_pool() {
    let pool = CpuPool::new(None);
    let meter = Arc::default();
    let (send, receive) = oneshot::channel();
    let waker = thread::spawn(move || {
        thread::sleep(Duration::from_millis(20));
        send.send(5).unwrap();
    });
    let job: Job<_> = Box::pin(async move {
        tokio::time::sleep(Duration::from_millis(5)).await;
        tokio::task::spawn_blocking(|| ()).await.unwrap();
        receive.await.unwrap()
    });
    assert_eq!(pool.run(&name("a"), job, &meter, true, std::future::pending::<()>()).await.0, 5);
    waker.join().unwrap();
}
