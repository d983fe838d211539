//! Simulated store of results, which is late and fails like the bus.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use cofferdam_cluster::keyed::{KeyedResults, MemoryResults, StoreUnavailable, StoredEntry};
use parking_lot::Mutex;

use super::network::Random;
use super::scenario::Faults;

/// Usual time of a request and of its answer.
const DELAY_MAX: Duration = Duration::from_millis(2);

pub(crate) struct SimulatedResults {
    stored: MemoryResults,
    random: Mutex<Random>,
    faults: Faults,
    /// Number of the next writes whose answers are lost.
    lost_answers: AtomicU32,
}

impl SimulatedResults {
    pub(crate) fn new(seed: u64, faults: Faults) -> Self {
        let random = Mutex::new(Random(seed ^ 0x00D5));
        let (stored, lost_answers) = (MemoryResults::default(), AtomicU32::new(0));
        Self { stored, random, faults, lost_answers }
    }

    /// Loses the answers to the next writes, which are stored.
    pub(crate) fn lose_answers(&self, count: u32) {
        self.lost_answers.store(count, Ordering::Relaxed);
    }

    /// Waits for one way of a request.
    ///
    /// # Errors
    /// If the message is lost.
    async fn travel(&self) -> Result<(), StoreUnavailable> {
        let (delay, is_lost) = {
            let mut random = self.random.lock();
            let is_late = random.percent(self.faults.late);
            let max = if is_late { self.faults.late_max } else { DELAY_MAX };
            (random.time(max), random.percent(self.faults.lost))
        };
        tokio::time::sleep(delay).await;
        if is_lost { Err(StoreUnavailable("lost".to_owned())) } else { Ok(()) }
    }
}

#[async_trait]
impl KeyedResults for SimulatedResults {
    async fn read(&self, name: &str) -> Result<Option<StoredEntry>, StoreUnavailable> {
        self.travel().await?;
        let entry = self.stored.read(name).await;
        self.travel().await?;
        entry
    }

    async fn write(
        &self,
        name: &str,
        expected: Option<u64>,
        value: Bytes,
    ) -> Result<Option<u64>, StoreUnavailable> {
        self.travel().await?;
        let written = self.stored.write(name, expected, value).await;
        self.travel().await?;
        let count = |left: u32| left.checked_sub(1);
        if self.lost_answers.fetch_update(Ordering::Relaxed, Ordering::Relaxed, count).is_ok() {
            return Err(StoreUnavailable("lost".to_owned()));
        }
        written
    }

    fn value_bytes_max(&self) -> usize {
        self.stored.value_bytes_max()
    }

    fn is_shared(&self) -> bool {
        true
    }
}
