//! Token budgets (`LOOP-48` to `LOOP-50`).

use std::sync::Arc;

use parking_lot::Mutex;

use crate::TokenUsage;

/// Limits on the number of tokens. `None` means no limit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct BudgetLimits {
    /// Maximum total of tokens.
    pub total: Option<u64>,
    /// Maximum tokens of requests.
    pub input: Option<u64>,
    /// Maximum tokens of replies.
    pub output: Option<u64>,
}

/// A counter of tokens with limits. Clones share the count.
///
/// Usage of an inner budget also counts for its outer one, and either ends a run (`LOOP-50`).
#[derive(Debug, Clone)]
pub struct TokenBudget {
    inner: Arc<BudgetState>,
}

#[derive(Debug)]
struct BudgetState {
    limits: BudgetLimits,
    used: Mutex<TokenUsage>,
    outer: Option<TokenBudget>,
}

/// Error returned when a budget is used up (`LOOP-49`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("Token budget exceeded: {kind} {count} of {limit}.")]
pub struct BudgetExceeded {
    /// `total`, `input` or `output`.
    pub kind: &'static str,
    /// Number of tokens used.
    pub count: u64,
    /// The limit.
    pub limit: u64,
}

impl TokenBudget {
    /// Creates a budget.
    #[must_use]
    pub fn new(limits: BudgetLimits) -> Self {
        Self { inner: Arc::new(BudgetState { limits, used: Mutex::default(), outer: None }) }
    }

    /// Creates a budget inside this one.
    #[must_use]
    pub fn inner(&self, limits: BudgetLimits) -> Self {
        Self {
            inner: Arc::new(BudgetState {
                limits,
                used: Mutex::default(),
                outer: Some(self.clone()),
            }),
        }
    }

    /// Returns the usage so far.
    #[must_use]
    pub fn used(&self) -> TokenUsage {
        *self.inner.used.lock()
    }

    /// Adds usage to this budget and all outer ones.
    pub fn count(&self, usage: TokenUsage) {
        Self::count_each(std::slice::from_ref(self), usage);
    }

    /// Adds usage to several budgets and all outer ones of them, once to each: an agent and its
    /// caller may share a budget.
    pub fn count_each(budgets: &[Self], usage: TokenUsage) {
        let mut counted: Vec<&Self> = Vec::new();
        for budget in budgets.iter().flat_map(Self::ancestors) {
            if !counted.iter().any(|other| Arc::ptr_eq(&other.inner, &budget.inner)) {
                *budget.inner.used.lock() += usage;
                counted.push(budget);
            }
        }
    }

    /// Checks that this budget and all outer ones have tokens left. A budget is exceeded when usage
    /// equals its limit. The total is compared first, then input, then output.
    ///
    /// # Errors
    /// The first limit that is reached, from the inside out.
    pub fn check(&self) -> Result<(), BudgetExceeded> {
        for budget in self.ancestors() {
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

    fn ancestors(&self) -> impl Iterator<Item = &Self> {
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
    fn a_budget_that_several_share_counts_once() {
        let outer = TokenBudget::new(total(10));
        let (first, second) = (outer.inner(total(8)), outer.inner(total(8)));
        let used = TokenUsage { total: 3, ..TokenUsage::default() };
        TokenBudget::count_each(
            &[first.clone(), outer.clone(), second.clone(), first.clone()],
            used,
        );
        assert_eq!([&outer, &first, &second].map(|budget| budget.used().total), [3, 3, 3]);
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
