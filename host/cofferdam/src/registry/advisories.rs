//! Advisories of a fetcher: downloaded by commands that look for new versions, and read once.

use cofferdam_registry::ADVISORIES_BYTES_MAX;
use url::Url;

use super::{PluginFetcher, unavailable};
use crate::Result;
use crate::advisories::{self, Advisories};

impl PluginFetcher {
    /// Downloads the advisories at the addresses of the configuration, and replaces the copies on
    /// this machine.
    ///
    /// # Errors
    /// Returns an error if an address cannot be reached, or does not have advisories. Its copy is
    /// unchanged.
    pub async fn download_advisories(&mut self) -> Result<()> {
        for address in &self.sources.addresses {
            self.download_advisory(address).await?;
        }
        self.advisories.take();
        Ok(())
    }

    /// Downloads the advisories like [`download_advisories`](Self::download_advisories). If that
    /// fails and there is an earlier copy, it is used, and the operator gets a note.
    ///
    /// # Errors
    /// Returns an error if advisories cannot be downloaded, and there is no copy of them.
    pub async fn refresh_advisories(&mut self) -> Result<()> {
        for address in &self.sources.addresses {
            let Err(error) = self.download_advisory(address).await else { continue };
            if !advisories::has_copy(address) {
                return Err(error);
            }
            self.operator.note(&format!(
                "warning: the advisories of {address} may be out of date: {error:#}"
            ));
        }
        self.advisories.take();
        Ok(())
    }

    async fn download_advisory(&self, address: &Url) -> Result<()> {
        let json = self.client.read_web(address.as_str(), ADVISORIES_BYTES_MAX).await;
        advisories::save_copy(address, &json.map_err(unavailable)?)
    }

    /// Returns the advisories of the configuration. Reads them at the first use.
    pub(super) fn advisories(&self) -> Result<&Advisories> {
        if let Some(read) = self.advisories.get() {
            return Ok(read);
        }
        let read = self.sources.read_ambient()?;
        read.notes().for_each(|note| self.operator.note(&note));
        Ok(self.advisories.get_or_init(|| read))
    }
}
