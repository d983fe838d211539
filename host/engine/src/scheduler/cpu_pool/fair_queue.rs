//! Queue in which plugins take turns.

use std::collections::VecDeque;

use cofferdam_tool::PluginName;

/// Round-robin queue over plugins: items of one plugin come out in order, and between two of them
/// every other waiting plugin gets one item out. Urgent items come first. A plugin without items
/// takes no space.
#[derive(Debug)]
pub(super) struct FairQueue<T> {
    /// Plugins with their items. The plugin whose turn it is comes first.
    plugins: VecDeque<(PluginName, VecDeque<T>)>,
}

impl<T> Default for FairQueue<T> {
    fn default() -> Self {
        Self { plugins: VecDeque::new() }
    }
}

impl<T> FairQueue<T> {
    /// Appends an item of a plugin.
    pub(super) fn push(&mut self, plugin: PluginName, item: T) {
        match self.plugins.iter_mut().find(|(name, _)| *name == plugin) {
            Some((_, items)) => items.push_back(item),
            None => self.plugins.push_back((plugin, VecDeque::from([item]))),
        }
    }

    /// Takes the first urgent item, or else the item whose turn it is.
    pub(super) fn pop(&mut self, is_urgent: impl Fn(&T) -> bool) -> Option<T> {
        let urgent = self.plugins.iter().enumerate().find_map(|(plugin, (_, items))| {
            items.iter().position(&is_urgent).map(|item| (plugin, item))
        });
        let (plugin, item) = urgent.unwrap_or((0, 0));
        let (name, mut items) = self.plugins.remove(plugin)?;
        let taken = items.remove(item);
        if items.is_empty() {
            return taken;
        }
        // An urgent item does not cost its plugin the turn.
        match urgent {
            Some(_) => self.plugins.insert(plugin, (name, items)),
            None => self.plugins.push_back((name, items)),
        }
        taken
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names() -> [PluginName; 2] {
        ["a", "b"].map(|name| PluginName::new(name).unwrap())
    }

    #[test]
    fn plugins_alternate_and_each_keeps_its_order() {
        let [a, b] = names();
        let mut queue = FairQueue::default();
        for number in 1..=3 {
            queue.push(a.clone(), number);
        }
        queue.push(b.clone(), 10);
        queue.push(b, 11);
        let order: Vec<_> = std::iter::from_fn(|| queue.pop(|_| false)).collect();
        assert_eq!(order, [1, 10, 2, 11, 3]);
    }

    #[test]
    fn an_item_that_returns_waits_for_all_others() {
        let [a, b] = names();
        let mut queue = FairQueue::default();
        queue.push(a.clone(), 1);
        queue.push(b, 2);
        let first = queue.pop(|_| false).unwrap();
        queue.push(a, first);
        assert_eq!([(); 3].map(|()| queue.pop(|_| false)), [Some(2), Some(1), None]);
    }

    #[test]
    fn an_urgent_item_comes_first() {
        let [a, b] = names();
        let mut queue = FairQueue::default();
        for (plugin, number) in [(&a, 1), (&a, 2), (&b, 10), (&b, 11)] {
            queue.push(plugin.clone(), number);
        }
        assert_eq!(queue.pop(|number| *number == 11), Some(11));
        assert_eq!([(); 4].map(|()| queue.pop(|_| false)), [Some(1), Some(10), Some(2), None]);
    }
}
