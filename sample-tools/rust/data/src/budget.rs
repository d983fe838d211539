//! Memory of a query.

use std::cell::Cell;

use cofferdam_sdk::ToolFailure;

/// Maximum bytes that a query keeps: less than the memory of a call, so that the query ends with a
/// failure before the host ends the call.
const BYTES_MAX: usize = 24 << 20;

/// Approximate bytes that a query keeps: groups, sorted rows, joined tables.
#[derive(Debug, Default)]
pub(crate) struct Budget {
    used: Cell<usize>,
}

impl Budget {
    pub(crate) fn charge(&self, bytes: usize) -> Result<(), ToolFailure> {
        self.used.set(self.used.get().saturating_add(bytes));
        if self.used.get() > BYTES_MAX {
            return Err(ToolFailure::new("the query needs too much memory")
                .suggestion(
                    "filter with `WHERE`, select fewer columns, group by columns with fewer values, \
                     add a `LIMIT` to `ORDER BY`, or join the smaller table to the larger one",
                )
                .permanent());
        }
        Ok(())
    }

    pub(crate) fn refund(&self, bytes: usize) {
        self.used.set(self.used.get().saturating_sub(bytes));
    }
}
