//! A queue in which plugins take turns: each plugin's items come out in their order, and between two items of one plugin
//! every other plugin that waits has one.

use std::collections::VecDeque;

use cofferdam_tool::PluginName;

/// Items that wait, by plugin. A plugin with nothing to do takes no space.
#[derive(Debug)]
pub(crate) struct Turns<T> {
    /// The plugin whose turn it is comes first. Short: one entry for each plugin that waits.
    plugins: VecDeque<(PluginName, VecDeque<T>)>,
}

impl<T> Default for Turns<T> {
    fn default() -> Self {
        Self { plugins: VecDeque::new() }
    }
}

impl<T> Turns<T> {
    /// Puts `item` behind the others of its plugin.
    pub(crate) fn push(&mut self, plugin: &PluginName, item: T) {
        match self.plugins.iter_mut().find(|(name, _)| name == plugin) {
            Some((_, items)) => items.push_back(item),
            None => self.plugins.push_back((plugin.clone(), VecDeque::from([item]))),
        }
    }

    /// Takes the item whose turn it is.
    pub(crate) fn pop(&mut self) -> Option<T> {
        let (plugin, mut items) = self.plugins.pop_front()?;
        let item = items.pop_front();
        if !items.is_empty() {
            self.plugins.push_back((plugin, items));
        }
        item
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plugins_alternate_and_each_keeps_its_order() {
        let [a, b] = ["a", "b"].map(|name| PluginName::new(name).unwrap());
        let mut turns = Turns::default();
        for number in 1..=3 {
            turns.push(&a, number);
        }
        turns.push(&b, 10);
        turns.push(&b, 11);
        let order: Vec<_> = std::iter::from_fn(|| turns.pop()).collect();
        assert_eq!(order, [1, 10, 2, 11, 3]);
    }

    #[test]
    fn one_who_comes_back_waits_for_all_others() {
        let [a, b] = ["a", "b"].map(|name| PluginName::new(name).unwrap());
        let mut turns = Turns::default();
        turns.push(&a, 1);
        turns.push(&b, 2);
        let first = turns.pop().unwrap();
        turns.push(&a, first);
        assert_eq!((turns.pop(), turns.pop(), turns.pop()), (Some(2), Some(1), None));
    }
}
