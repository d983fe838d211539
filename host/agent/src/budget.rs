//! Token budgets (`LOOP-48` to `LOOP-50`).

use std::sync::{Arc, Mutex, PoisonError};

use crate::TokenUsage;

/// How many tokens may be used. What is not set is not limited.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct BudgetLimits {
    /// Tokens in all.
    pub total: Option<u64>,
    /// Tokens of requests.
    pub input: Option<u64>,
    /// Tokens of replies.
    pub output: Option<u64>,
}

/// A count of tokens with limits. Clones count together.
///
/// A budget inside another one counts for both, and either ends a run (`LOOP-50`).
#[derive(Debug, Clone)]
pub struct TokenBudget {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    limits: BudgetLimits,
    used: Mutex<TokenUsage>,
    outer: Option<TokenBudget>,
}

/// A budget is used up (`LOOP-49`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("Token budget exceeded: {kind} {count} of {limit}.")]
pub struct BudgetExceeded {
    /// `total`, `input` or `output`.
    pub kind: &'static str,
    /// What was used.
    pub count: u64,
    /// What there was to use.
    pub limit: u64,
}

impl TokenBudget {
    /// A budget.
    #[must_use]
    pub fn new(limits: BudgetLimits) -> Self {
        Self { inner: Arc::new(Inner { limits, used: Mutex::default(), outer: None }) }
    }

    /// A budget inside this one.
    #[must_use]
    pub fn inner(&self, limits: BudgetLimits) -> Self {
        Self {
            inner: Arc::new(Inner { limits, used: Mutex::default(), outer: Some(self.clone()) }),
        }
    }

    /// What was used so far.
    #[must_use]
    pub fn used(&self) -> TokenUsage {
        *self.inner.used.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts what was used, here and in all outer budgets.
    pub fn count(&self, usage: TokenUsage) {
        for budget in self.outwards() {
            *budget.inner.used.lock().unwrap_or_else(PoisonError::into_inner) += usage;
        }
    }

    /// Whether there is something left, here and in all outer budgets. Equal is exceeded; total is
    /// compared first, then input, then output.
    ///
    /// # Errors
    /// The first limit that is reached, from the inside out.
    pub fn check(&self) -> Result<(), BudgetExceeded> {
        for budget in self.outwards() {
            let (limits, used) = (budget.inner.limits, budget.used());
            let kinds = [
                ("total", used.total, limits.total),
                ("input", used.input, limits.input),
                ("output", used.output, limits.output),
            ];
            for (kind, count, limit) in kinds {
                if let Some(limit) = limit.filter(|limit| count >= *limit) {
                    return Err(BudgetExceeded { kind, count, limit });
                }
            }
        }
        Ok(())
    }

    fn outwards(&self) -> impl Iterator<Item = &Self> {
        std::iter::successors(Some(self), |budget| budget.inner.outer.as_ref())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn total(limit: u64) -> BudgetLimits {
        BudgetLimits { total: Some(limit), ..BudgetLimits::default() }
    }

    #[test]
    fn what_an_inner_budget_counts_its_outer_one_counts_too() {
        let outer = TokenBudget::new(total(10));
        let (first, second) = (outer.inner(total(8)), outer.inner(total(8)));
        first.count(TokenUsage { total: 6, ..TokenUsage::default() });
        assert_eq!((first.check(), second.check()), (Ok(()), Ok(())));
        second.count(TokenUsage { total: 6, ..TokenUsage::default() });
        let exceeded = BudgetExceeded { kind: "total", count: 12, limit: 10 };
        assert_eq!(first.check(), Err(exceeded));
        assert_eq!(exceeded.to_string(), "Token budget exceeded: total 12 of 10.");
        assert_eq!(second.used().total, 6);
    }
}
