//! What is to be done with a stream that nobody has read yet (`MW-5`).

use crate::Update;

/// Changes of updates and of the whole that they make, and what is to be called at the end.
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

    /// Changes the whole. What was said about it is used up.
    pub(crate) fn whole(&mut self, whole: T) -> T {
        self.wholes.drain(..).fold(whole, |whole, change| change(whole))
    }

    /// It is over. Said once, and at the latest when the hooks are dropped.
    pub(crate) fn end(&mut self) {
        self.ends.drain(..).for_each(|end| end());
    }
}

impl<T> Drop for Hooks<T> {
    fn drop(&mut self) {
        self.end();
    }
}
