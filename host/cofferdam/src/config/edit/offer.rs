//! Compares what the grants of a configuration offer.

use cofferdam_tool::permission::ClockPrecision;
use cofferdam_tool::{Permission, Policy};

/// Returns whether a policy offers a permission in full. Limits are not compared.
pub(super) fn offers(policy: &Policy, permission: &Permission) -> bool {
    match permission {
        Permission::Files(name, access) => policy.files.iter().any(|(store, offered)| {
            name.as_ref().is_none_or(|name| name == store)
                && offered.intersect(*access) == Some(*access)
        }),
        Permission::Http(rule) => {
            policy.http.iter().any(|grant| grant.rule.intersect(rule).as_ref() == Some(rule))
        }
        Permission::Socket(rule) => policy.sockets.contains(rule),
        Permission::Env(name) => policy.env.contains(name),
        Permission::Config(key) => policy.config.contains(key),
        Permission::Secret(name) => policy.secrets.contains(name),
        Permission::Clock(precision) => *precision <= policy.clock,
        Permission::Random => policy.random,
        Permission::Tool(name) => policy.tools.contains(name),
        Permission::Ask(kind) => policy.ask.contains(kind),
        Permission::Limit(..) => true,
    }
}

/// Returns whether `[grants]` with this policy gives a permission that a plugin's own table cannot
/// take away. Each plugin has random numbers and a coarse clock anyway, and its table can.
pub(super) fn gives_to_all(shared: &Policy, permission: &Permission) -> bool {
    match permission {
        Permission::Random | Permission::Limit(..) => false,
        Permission::Clock(_) if shared.clock <= ClockPrecision::Coarse => false,
        _ => offers(shared, permission),
    }
}

/// Returns whether a store or the clock is wider in `after` than in `before`. These are what a
/// plugin's own table can make narrower.
pub(super) fn is_wider(after: &Policy, before: &Policy) -> bool {
    let mut files = after.files.iter();
    after.clock > before.clock
        || files.any(|(store, access)| {
            let known = before.files.get(store).and_then(|known| known.intersect(*access));
            known != Some(*access)
        })
}
