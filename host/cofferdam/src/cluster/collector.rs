//! Copies of the call logs of workers.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use cofferdam_cluster::nats::NatsBus;
use cofferdam_cluster::{Bus as _, CollectedLog, LogCollector};
use cofferdam_record::{CopyError, LogCollection};
use serde::Serialize;
use tokio_util::sync::CancellationToken;

use super::{ClusterOptions, not_started, problem_of};
use crate::{Error, Operator, Result};

/// Interval in which workers are asked for what is new.
const COLLECT_INTERVAL: Duration = Duration::from_secs(2);
/// Interval in which the limits are applied.
const PRUNE_INTERVAL: Duration = Duration::from_mins(10);
/// Maximum time for copying what is there.
const ONCE_MAX: Duration = Duration::from_hours(12);

/// Options of a [`Collector`].
#[derive(Debug, Clone)]
pub struct CollectorOptions {
    /// Cluster whose workers are asked.
    pub cluster: ClusterOptions,
    /// Directory of the copies, of which only one collector may be running.
    pub directory: PathBuf,
    /// Maximum bytes of each copy.
    pub bytes_max: u64,
    /// Maximum age of the records.
    pub age_max: Duration,
}

/// Result of [`Collector::run_once`].
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct CollectionReport {
    /// Number of logs that workers have.
    pub logs: usize,
    /// Bytes that were copied.
    pub bytes: u64,
    /// Problems, each with the name of its log.
    pub problems: Vec<String>,
}

/// Copies the call logs of workers to one directory. `cofferdam::record::Log` reads all of them
/// there.
///
/// ```no_run
/// # async fn example() -> cofferdam::Result<()> {
/// use cofferdam::cluster::{ClusterOptions, Collector, CollectorOptions};
///
/// let (bytes_max, age_max) = cofferdam::records::limits(None)?;
/// let cluster = ClusterOptions { servers: "nats://10.0.0.5:4222".to_owned(), ..Default::default() };
/// let directory = "fleet-log".into();
/// let options = CollectorOptions { cluster, directory, bytes_max, age_max };
/// let report = Collector::open(options).await?.run_once().await?;
/// println!("copied {} bytes of {} logs", report.bytes, report.logs);
/// # Ok(())
/// # }
/// ```
pub struct Collector {
    bus: Arc<NatsBus>,
    collector: LogCollector,
    options: CollectorOptions,
    known: BTreeSet<String>,
}

impl Collector {
    /// Connects to a cluster, and creates the directory if it does not exist.
    ///
    /// # Errors
    /// Returns an error if there is no connection, the directory is not the user's own, or another
    /// collector runs in it.
    pub async fn open(options: CollectorOptions) -> Result<Self> {
        let collection =
            LogCollection::create(&options.directory).map_err(|error| match error {
                CopyError::InUse => Error::NotAccepted(error.to_string()),
                other => Error::invalid(other.to_string()),
            })?;
        let tenant = options.cluster.to_tenant()?;
        let bus = options.cluster.connect("cofferdam collector").await?;
        let started = LogCollector::start(Arc::clone(&bus) as _, &tenant, collection).await;
        let collector = started.map_err(not_started)?;
        Ok(Self { bus, collector, options, known: BTreeSet::new() })
    }

    /// Copies what is there and what comes, until `stop` is canceled.
    pub async fn run(mut self, stop: CancellationToken, operator: &Operator) {
        let mut problem = None;
        let mut pruned = None::<Instant>;
        let collecting = async {
            loop {
                let begun = tokio::time::Instant::now();
                let current = problem_of(self.bus.state());
                if current != problem {
                    let state = current.unwrap_or("connected to NATS again");
                    operator.note(&format!("warning: {state}"));
                    problem = current;
                }
                let collected = self.collector.collect(COLLECT_INTERVAL).await;
                self.note(&collected, operator);
                if pruned.is_none_or(|pruned| pruned.elapsed() >= PRUNE_INTERVAL) {
                    pruned = Some(Instant::now());
                    let (bytes_max, age_max) = (self.options.bytes_max, self.options.age_max);
                    if let Err(error) = self.collector.prune(bytes_max, age_max).await {
                        operator.note(&format!("warning: the limits are not applied: {error}"));
                    }
                }
                tokio::time::sleep_until(begun + COLLECT_INTERVAL).await;
            }
        };
        stop.run_until_cancelled(collecting).await;
    }

    /// Copies what is there.
    ///
    /// # Errors
    /// Returns an error if no worker gives out its log.
    pub async fn run_once(mut self) -> Result<CollectionReport> {
        let collected = self.collector.collect(ONCE_MAX).await;
        if collected.is_empty() {
            return Err(Error::NotAccepted(
                "no worker gives out its call log; start workers with `--offer-records`, and check \
                 the tenant and the permissions of the NATS users"
                    .to_owned(),
            ));
        }
        let (bytes_max, age_max) = (self.options.bytes_max, self.options.age_max);
        let pruned = self.collector.prune(bytes_max, age_max).await;
        pruned.map_err(|error| Error::NotAccepted(error.to_string()))?;
        Ok(CollectionReport {
            logs: collected.len(),
            bytes: collected.iter().map(|log| log.bytes).sum(),
            problems: collected.iter().flat_map(problems).collect(),
        })
    }

    fn note(&mut self, collected: &[CollectedLog], operator: &Operator) {
        for log in collected {
            if self.known.insert(log.digest.clone()) {
                operator.note(&format!("copying the call log {} to logs/{}", log.name, log.digest));
            }
            problems(log).for_each(|problem| operator.note(&format!("warning: {problem}")));
        }
    }
}

fn problems(log: &CollectedLog) -> impl Iterator<Item = String> {
    log.problems.iter().map(|problem| format!("{}: {problem}", log.name))
}
