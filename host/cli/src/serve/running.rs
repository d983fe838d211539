//! A server that runs, and everything that changes what it offers: files that are written, grants that a person gives, and
//! servers that come or change.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::{Mutex as SyncMutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use cofferdam_engine::Engine;
use cofferdam_mcp::{Decision, Grantor, MissingGrant, Server};
use tokio::sync::Mutex;

use super::Offering;
use crate::args::ServeArgs;
use crate::print;
use crate::servers::News;

/// How long to wait after news of a server for those of others.
const QUIET: Duration = Duration::from_millis(50);

/// What is served and what it is made of. One change happens at a time.
pub(crate) struct Running {
    server: Server,
    engine: Engine,
    pub(super) args: ServeArgs,
    offering: Mutex<Offering>,
    /// Fires when servers have changed.
    news: News,
    /// What a person could grant, by plugin; kept apart, for it is looked at in each call.
    missing: SyncMutex<Vec<(String, Vec<MissingGrant>)>>,
}

impl Running {
    pub(crate) fn new(
        server: Server,
        engine: Engine,
        args: ServeArgs,
        offering: Offering,
        news: News,
    ) -> Self {
        let missing = SyncMutex::new(offering.missing());
        Self { server, engine, args, offering: Mutex::new(offering), news, missing }
    }

    /// The files that everything is made of.
    pub(super) async fn files(&self) -> Vec<PathBuf> {
        let offering = self.offering.lock().await;
        let components = offering.components().flat_map(|path| [path.clone(), path.with_extension("toml")]);
        components.chain(self.args.plugins.config.clone()).collect()
    }

    /// Files that have changed since they were read, before anybody watched them.
    pub(super) async fn changed_unseen(&self) -> Vec<PathBuf> {
        self.offering.lock().await.changed()
    }

    /// Loads everything again, and offers it.
    pub(super) async fn reload_all(&self) -> anyhow::Result<String> {
        let mut offering = self.offering.lock().await;
        let new = Offering::load(&self.engine, &self.args, Some(&offering), &self.news).await?;
        self.server.publish(new.offer(&self.args)?);
        *offering = new;
        self.note_missing(&offering);
        Ok("the configuration".to_owned())
    }

    /// Loads the plugins of some files again, and offers them.
    pub(super) async fn reload(&self, paths: &[PathBuf]) -> anyhow::Result<String> {
        let mut offering = self.offering.lock().await;
        let mut names = BTreeSet::new();
        let mut changed = offering.clone();
        for path in paths {
            changed.reload(&self.engine, path).await?;
            names.extend(changed.plugin_of(path).map(str::to_owned));
        }
        self.server.publish(changed.offer(&self.args)?);
        *offering = changed;
        self.note_missing(&offering);
        Ok(names.into_iter().collect::<Vec<_>>().join(", "))
    }

    /// Offers anew whatever servers offer, as often as that changes, until the process ends.
    pub(crate) async fn follow_servers(&self) {
        loop {
            self.news.notified().await;
            // Servers that come together are offered together.
            tokio::time::sleep(QUIET).await;
            let offering = self.offering.lock().await;
            match offering.offer(&self.args) {
                Ok(offer) => self.server.publish(offer),
                Err(error) => print::error(&error.context("what a server offers now is not offered")),
            }
        }
    }

    fn note_missing(&self, offering: &Offering) {
        *self.missing.lock().unwrap_or_else(PoisonError::into_inner) = offering.missing();
    }

    async fn grant(&self, source: &str, is_lasting: bool) -> anyhow::Result<()> {
        let mut offering = self.offering.lock().await;
        let mut changed = offering.clone();
        let granted = changed.grant_missing(&self.engine, source, is_lasting).await?;
        self.server.publish(changed.offer(&self.args)?);
        *offering = changed;
        self.note_missing(&offering);
        print::note(&format!("granted to {source}: {}", granted.join(", ")));
        Ok(())
    }
}

#[async_trait]
impl Grantor for Running {
    fn missing(&self, source: &str) -> Vec<MissingGrant> {
        let missing = self.missing.lock().unwrap_or_else(PoisonError::into_inner);
        missing
            .iter()
            .find(|(name, _)| name == source)
            .map(|(_, missing)| missing.clone())
            .unwrap_or_default()
    }

    async fn decide(&self, source: &str, decision: Decision) -> Result<(), String> {
        match decision {
            Decision::No => {
                self.missing
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .retain(|(name, _)| name != source);
                Ok(())
            }
            Decision::Once | Decision::Always => {
                let granted = self.grant(source, decision == Decision::Always).await;
                granted.map_err(|error| {
                    // The reason may name a place on the host, which is for whoever runs it.
                    print::error(&error.context(format!("nothing was granted to {source}")));
                    format!("Nothing was granted to {source}; the server's log says why.")
                })
            }
        }
    }

    fn how_to_grant(&self, source: &str, permission: &str) -> Option<String> {
        let permission: cofferdam_tool::Permission = permission.parse().ok()?;
        let config = self.args.plugins.config.as_deref().and_then(Path::file_name);
        Some(match config {
            Some(config) => format!(
                "Whoever runs the server can grant it: cofferdam grant {source} '{permission}' --config {}",
                config.to_string_lossy()
            ),
            None => format!(
                "Whoever runs the server can grant it, in a configuration with [plugins.{source}.grants]"
            ),
        })
    }
}
