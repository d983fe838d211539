//! Hooks of streams, which apply when the stream is read (`MW-5`).

use crate::Update;

/// Functions that change updates and the whole result, and functions to call at the end.
pub(crate) struct Hooks<T> {
    updates: Vec<Box<dyn FnMut(Update) -> Update + Send>>,
    wholes: Vec<Box<dyn FnOnce(T) -> T + Send>>,
    ends: Vec<Box<dyn FnOnce() + Send>>,
}

impl<T> Default for Hooks<T> {
    fn default() -> Self {
        Self { updates: Vec::new(), wholes: Vec::new(), ends: Vec::new() }
    }
}

impl<T> Hooks<T> {
    pub(crate) fn on_update(&mut self, change: impl FnMut(Update) -> Update + Send + 'static) {
        self.updates.push(Box::new(change));
    }

    pub(crate) fn on_whole(&mut self, change: impl FnOnce(T) -> T + Send + 'static) {
        self.wholes.push(Box::new(change));
    }

    pub(crate) fn on_end(&mut self, end: impl FnOnce() + Send + 'static) {
        self.ends.push(Box::new(end));
    }

    pub(crate) fn update(&mut self, update: Update) -> Update {
        self.updates.iter_mut().fold(update, |update, change| change(update))
    }

    /// Applies the hooks for the whole result and removes them.
    pub(crate) fn whole(&mut self, whole: T) -> T {
        self.wholes.drain(..).fold(whole, |whole, change| change(whole))
    }

    /// Calls the hooks for the end, once; dropping the hooks does so too.
    pub(crate) fn end(&mut self) {
        self.ends.drain(..).for_each(|end| end());
    }
}

impl<T> Drop for Hooks<T> {
    fn drop(&mut self) {
        self.end();
    }
}
