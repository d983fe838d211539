//! Choices that a program makes itself (`CHOICE-17`).

#[cfg(test)]
mod tests;

use std::fmt;
use std::sync::Arc;

use super::{ChoiceConfiguration, ChoiceContext, ChoiceError};

/// Choice of functions that a program makes itself, for [`ChoiceBehavior::custom`].
///
/// * **Calls.** Before every request of a run, and for all runs of the agents that have it,
///   possibly at the same time. What differs between runs is in the context: the messages so far
///   and the number of the request.
/// * **Blocking.** The run waits, so it must not block.
/// * **Configuration.** Everything in it counts for one request: functions to advertise, the
///   restriction on calls, invocation, and options. A built-in behavior makes a good start, as in
///   the example. If every request requires a call, the run ends only by its limits.
/// * **Limits.** Functions whose calls are invoked have to be in the registry (`CHOICE-5`), and
///   calls are not invoked beyond the limits of `CHOICE-13` or with [`ChoiceKind::None`]
///   (`CHOICE-4`).
///
/// ```
/// use std::sync::Arc;
///
/// use cofferdam_agent::ChoiceBehavior;
/// use cofferdam_agent::choice::{ChoiceConfiguration, ChoiceContext, ChoiceError, FunctionChoice};
///
/// /// Advertises each function until it has been called.
/// struct OnceEach;
///
/// impl FunctionChoice for OnceEach {
///     fn configure(
///         &self,
///         context: &ChoiceContext<'_>,
///     ) -> Result<ChoiceConfiguration, ChoiceError> {
///         let mut chosen = ChoiceBehavior::auto().configure(context)?;
///         let calls = || context.history.iter().flat_map(|message| message.calls());
///         if let Some(functions) = &mut chosen.functions {
///             functions.retain(|function| {
///                 let name = function.definition().name.as_str();
///                 calls().all(|call| call.name != name)
///             });
///         }
///         Ok(chosen)
///     }
/// }
///
/// let behavior = ChoiceBehavior::custom(Arc::new(OnceEach));
/// # assert!(behavior.is_custom());
/// ```
///
/// [`ChoiceBehavior::custom`]: super::ChoiceBehavior::custom
/// [`ChoiceKind::None`]: super::ChoiceKind::None
pub trait FunctionChoice: Send + Sync {
    /// Returns the configuration for one request.
    ///
    /// # Errors
    /// An error ends the run. [`ChoiceError::Custom`] has a message of the program.
    fn configure(&self, context: &ChoiceContext<'_>) -> Result<ChoiceConfiguration, ChoiceError>;
}

/// A custom choice. Equal only to its clones.
#[derive(Clone)]
pub(super) struct SharedChoice(pub(super) Arc<dyn FunctionChoice>);

impl PartialEq for SharedChoice {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl fmt::Debug for SharedChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SharedChoice")
    }
}
