//! Events of a log besides calls.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::{PayloadDigest, SpanIds};

/// An event besides calls. Strings are redacted and cut to 1,024 characters when they are written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
#[non_exhaustive]
pub enum LogEvent {
    /// A model has answered.
    Model {
        /// Provider, such as `anthropic`.
        provider: String,
        /// Model, as requested.
        model: String,
        /// Session that the request belongs to.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        session: Option<String>,
        /// Tokens of the request, if the provider tells.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        input_tokens: Option<u64>,
        /// Tokens of the answer, if the provider tells.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        output_tokens: Option<u64>,
        /// Reason why the answer ended, or type of the error.
        finish: String,
        /// Position in a trace.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        trace: Option<SpanIds>,
        /// Request and answer, if they are stored.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        exchange: Option<PayloadDigest>,
        /// Time from request to end of the answer.
        #[serde(rename = "us", with = "as_micros")]
        duration: Duration,
    },
    /// A run of an agent has ended.
    Agent {
        /// Name of the agent.
        agent: String,
        /// Session that the run belongs to.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        session: Option<String>,
        /// Provider of the agent's model, such as `anthropic`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        provider: Option<String>,
        /// Model that the agent requests.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        model: Option<String>,
        /// Tokens of all requests of the run, if the provider tells.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        input_tokens: Option<u64>,
        /// Tokens of all answers of the run, if the provider tells.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        output_tokens: Option<u64>,
        /// Type of the error that ended the run, if one did.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        error: Option<String>,
        /// Position in a trace.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        trace: Option<SpanIds>,
        /// Time from start to end of the run.
        #[serde(rename = "us", with = "as_micros")]
        duration: Duration,
    },
    /// A user has decided about a call.
    Approval {
        /// Tool that is to be called.
        tool: String,
        /// Id that the caller gave to the call.
        call: String,
        /// User or client that decided.
        by: String,
        /// Decision, such as `once`, `always` or `denied`.
        decision: String,
        /// Time that the decision took.
        #[serde(rename = "us", with = "as_micros")]
        waited: Duration,
    },
    /// A permission was added or revoked.
    Grant {
        /// Plugin that the permission is for.
        plugin: String,
        /// Permission as it stands in a configuration.
        permission: String,
        /// True if it was added, false if it was revoked.
        is_added: bool,
    },
    /// A plugin was loaded or replaced.
    Plugin {
        /// Configured name.
        plugin: String,
        /// Digest of the component.
        digest: String,
        /// Digest of the component that it replaces.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        replaces: Option<String>,
    },
    /// A label policy has decided.
    Label {
        /// Tool that the decision is about.
        tool: String,
        /// Id that the caller gave to the call.
        call: String,
        /// Decision, such as `hidden` or `refused`, with the labels and never with a value.
        decision: String,
    },
}

impl LogEvent {
    /// Describes the event in one line. `time` formats durations.
    #[must_use]
    pub fn description(&self, time: impl Fn(Duration) -> String) -> String {
        match self {
            Self::Model {
                provider, model, input_tokens, output_tokens, finish, duration, ..
            } => {
                let tokens = tokens(*input_tokens, *output_tokens);
                format!("{provider} {model}: {finish}, {tokens}, {}", time(*duration))
            }
            Self::Agent { agent, input_tokens, output_tokens, error, duration, .. } => {
                let outcome = error.as_deref().unwrap_or("ok");
                let tokens = tokens(*input_tokens, *output_tokens);
                format!("{agent}: {outcome}, {tokens}, {}", time(*duration))
            }
            Self::Approval { tool, call, by, decision, waited } => {
                format!("{tool} ({call}): {decision} by {by} after {}", time(*waited))
            }
            Self::Grant { plugin, permission, is_added } => {
                let verb = if *is_added { "granted" } else { "revoked" };
                format!("{plugin}: {verb} {permission}")
            }
            Self::Plugin { plugin, digest, replaces } => match replaces {
                Some(before) => format!("{plugin}: {digest} replaces {before}"),
                None => format!("{plugin}: loaded {digest}"),
            },
            Self::Label { tool, call, decision } => format!("{tool} ({call}): {decision}"),
        }
    }

    /// Returns the session that the event belongs to, if it is known.
    #[must_use]
    pub fn session(&self) -> Option<&str> {
        match self {
            Self::Model { session, .. } | Self::Agent { session, .. } => session.as_deref(),
            _ => None,
        }
    }

    /// Returns the position of the event in a trace, if it has one.
    #[must_use]
    pub fn trace(&self) -> Option<&SpanIds> {
        match self {
            Self::Model { trace, .. } | Self::Agent { trace, .. } => trace.as_ref(),
            _ => None,
        }
    }

    /// Returns the time that the event took: zero for one that is a moment.
    #[must_use]
    pub fn duration(&self) -> Duration {
        match self {
            Self::Model { duration, .. } | Self::Agent { duration, .. } => *duration,
            Self::Approval { waited, .. } => *waited,
            _ => Duration::ZERO,
        }
    }

    /// Returns the strings of the event, for redaction.
    pub(crate) fn strings(&mut self) -> Vec<&mut String> {
        match self {
            Self::Model { provider, model, session, finish, .. } => {
                [provider, model, finish].into_iter().chain(session.as_mut()).collect()
            }
            Self::Agent { agent, session, provider, model, error, .. } => {
                let optional = [session, provider, model, error].into_iter().flatten();
                std::iter::once(agent).chain(optional).collect()
            }
            Self::Approval { tool, call, by, decision, .. } => vec![tool, call, by, decision],
            Self::Grant { plugin, permission, .. } => vec![plugin, permission],
            Self::Plugin { plugin, digest, replaces } => {
                [plugin, digest].into_iter().chain(replaces.as_mut()).collect()
            }
            Self::Label { tool, call, decision } => vec![tool, call, decision],
        }
    }
}

mod as_micros {
    use std::time::Duration;

    use serde::{Deserialize as _, Deserializer, Serializer};

    pub(super) fn serialize<S: Serializer>(
        duration: &Duration,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.serialize_u64(crate::entry::micros(*duration))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Duration, D::Error> {
        u64::deserialize(deserializer).map(Duration::from_micros)
    }
}

fn tokens(input: Option<u64>, output: Option<u64>) -> String {
    let count = |tokens: Option<u64>| tokens.map_or("?".to_owned(), |count| count.to_string());
    format!("{} tokens in, {} out", count(input), count(output))
}
