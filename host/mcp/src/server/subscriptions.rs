//! Limits of what clients subscribe to: the host keeps it, and sends it back with each change.

use std::collections::BTreeSet;

use rmcp::ErrorData;
use rmcp::model::SubscriptionFilter;

/// Maximum number of addresses that one connection, or one filter, may subscribe to.
const SUBSCRIPTIONS_MAX: usize = 1000;
/// Maximum bytes of an address that a client subscribes to.
const ADDRESS_BYTES_MAX: usize = 2048;

/// Adds an address to the subscriptions of a connection.
///
/// # Errors
/// If the address is too long, or there are too many.
pub(super) fn add(subscriptions: &mut BTreeSet<String>, address: String) -> Result<(), ErrorData> {
    if address.len() > ADDRESS_BYTES_MAX {
        let message = format!("expected an address of at most {ADDRESS_BYTES_MAX} bytes");
        return Err(ErrorData::invalid_params(message, None));
    }
    if subscriptions.len() >= SUBSCRIPTIONS_MAX && !subscriptions.contains(&address) {
        return Err(ErrorData::invalid_request("too many subscriptions", None));
    }
    subscriptions.insert(address);
    Ok(())
}

/// Returns the part of a filter that is within the limits.
pub(super) fn accepted(requested: &SubscriptionFilter) -> SubscriptionFilter {
    let mut accepted = requested.clone();
    if let Some(addresses) = &mut accepted.resource_subscriptions {
        addresses.retain(|address| address.len() <= ADDRESS_BYTES_MAX);
        addresses.truncate(SUBSCRIPTIONS_MAX);
    }
    accepted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_limited_in_number_and_length() {
        let mut subscriptions = BTreeSet::new();
        assert!(add(&mut subscriptions, "a".repeat(ADDRESS_BYTES_MAX + 1)).is_err());
        for number in 0..SUBSCRIPTIONS_MAX {
            add(&mut subscriptions, format!("a://{number}")).unwrap();
        }
        assert!(add(&mut subscriptions, "a://new".to_owned()).is_err());
        add(&mut subscriptions, "a://0".to_owned()).unwrap();
        let mut requested = SubscriptionFilter::new();
        requested.resource_subscriptions =
            Some(vec!["a".repeat(ADDRESS_BYTES_MAX + 1), "b".to_owned()]);
        assert_eq!(accepted(&requested).resource_subscriptions, Some(vec!["b".to_owned()]));
    }
}
