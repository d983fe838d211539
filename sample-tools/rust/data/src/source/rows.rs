//! Rows in memory: the result of a subquery.

use std::rc::Rc;

use cofferdam_sdk::ToolFailure;

use super::{Column, Row, Sink, Source};

pub(crate) struct Rows {
    pub(crate) columns: Vec<Column>,
    pub(crate) rows: Vec<Row>,
}

impl Source for Rc<Rows> {
    fn columns(&self) -> &[Column] {
        &self.columns
    }

    fn scan(&self, _wanted: &[bool], sink: &mut Sink<'_>) -> Result<(), ToolFailure> {
        for row in &self.rows {
            if sink(row.clone())?.is_break() {
                break;
            }
        }
        Ok(())
    }

    fn format(&self) -> &'static str {
        "rows"
    }
}
