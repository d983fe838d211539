//! Offers of a gateway to shares of its callers.

use cofferdam_mcp::OfferVariant;

use super::{ServeOptions, ServedState};
use crate::Result;

impl ServedState {
    /// Returns the offers to callers that get canaries, and warns of versions that no worker has.
    pub(super) fn variants(&self, options: &ServeOptions) -> Result<Vec<OfferVariant>> {
        let Some(remote) = &self.remote else { return Ok(Vec::new()) };
        remote.note_absent(&self.rollout, &self.operator);
        let mut first = 0;
        let variant = |percent| {
            let offer = self.offer_to(first, options)?;
            first = percent;
            Ok(OfferVariant { percent, offer })
        };
        self.rollout.shares().into_iter().map(variant).collect()
    }
}
