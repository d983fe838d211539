//! The program of a pattern, and the machine that runs it.
//!
//! The machine holds every state that the name read so far allows, each at most once, so a run is
//! linear in the length of the name. Braces are branches, not expansions: fifty of them cost fifty
//! branches and not 2⁵⁰ patterns.

use super::set::Set;

/// One step of a pattern.
#[derive(Debug, Clone)]
pub(super) enum Instruction {
    Char(char),
    /// `?`
    One,
    Set(Set),
    /// One `*`. Two of them that fill a segment are a `**`, see [`SegmentState`].
    Star,
    Separator,
    /// Continues at each of these indexes.
    Branch(Vec<usize>),
    /// Continues at this index.
    Jump(usize),
    /// End of the pattern.
    End,
}

/// Path on which the machine came to an instruction. It decides whether two stars are the segment
/// `**`: they are if the pattern on this path began a segment right before them and ends it right
/// after them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SegmentState {
    /// The pattern is at the start of a segment.
    SegmentStart,
    /// One star since the start of the segment, which has matched nothing.
    OneStar,
    /// Two stars since the start of the segment, which have matched nothing: a `**` if the segment
    /// ends here.
    TwoStars,
    /// Inside a `**` that has matched something.
    Deep,
    /// Anywhere else in a segment.
    Inside,
}

/// Number of variants of [`SegmentState`].
const WAYS: usize = 5;

type State = (usize, SegmentState);

/// A compiled pattern.
#[derive(Debug, Clone, Default)]
pub(super) struct Program(Vec<Instruction>);

impl Program {
    pub(super) fn push(&mut self, instruction: Instruction) {
        self.0.push(instruction);
    }

    /// Adds a branch over `alternatives`, each compiled by `compile`.
    pub(super) fn push_alternatives(
        &mut self,
        alternatives: &[Vec<char>],
        compile: impl Fn(&[char], &mut Self),
    ) {
        let branch = self.0.len();
        self.push(Instruction::Branch(Vec::new()));
        let (mut starts, mut ends) = (Vec::new(), Vec::new());
        for alternative in alternatives {
            starts.push(self.0.len());
            compile(alternative, self);
            ends.push(self.0.len());
            self.push(Instruction::Jump(0));
        }
        let after = self.0.len();
        self.set(branch, Instruction::Branch(starts));
        ends.into_iter().for_each(|end| self.set(end, Instruction::Jump(after)));
    }

    fn set(&mut self, index: usize, instruction: Instruction) {
        if let Some(slot) = self.0.get_mut(index) {
            *slot = instruction;
        }
    }

    /// Returns whether the whole of `name` matches.
    pub(super) fn matches(&self, name: impl Iterator<Item = char>) -> bool {
        let mut states = States::new(self.0.len());
        self.enter(&mut states, (0, SegmentState::SegmentStart));
        let mut next = States::new(self.0.len());
        for c in name {
            next.clear();
            for &state in &states.list {
                self.step(state, c, &mut next);
            }
            std::mem::swap(&mut states, &mut next);
        }
        states.list.iter().any(|&state| self.accepts(state))
    }

    /// Adds `start` and everything that can be reached from it without reading a character.
    fn enter(&self, states: &mut States, start: State) {
        let mut pending = vec![start];
        while let Some(state) = pending.pop() {
            if states.insert(state) {
                self.follow(state, &mut pending);
            }
        }
    }

    fn follow(&self, (index, way): State, pending: &mut Vec<State>) {
        let next = index.saturating_add(1);
        match (self.0.get(index), way) {
            (Some(Instruction::Branch(targets)), _) => {
                pending.extend(targets.iter().map(|&t| (t, way)))
            }
            (Some(Instruction::Jump(target)), _) => pending.push((*target, way)),
            // A `**` may match no segment at all; then its separator matches nothing, too.
            (Some(Instruction::Separator), SegmentState::TwoStars) => {
                pending.push((next, SegmentState::SegmentStart))
            }
            (Some(Instruction::Star), SegmentState::SegmentStart) => {
                pending.extend([(next, SegmentState::Inside), (next, SegmentState::OneStar)]);
            }
            (Some(Instruction::Star), SegmentState::OneStar) => {
                pending.extend([(next, SegmentState::Inside), (next, SegmentState::TwoStars)]);
            }
            (Some(Instruction::Star), SegmentState::Inside) => {
                pending.push((next, SegmentState::Inside))
            }
            _ => {}
        }
    }

    /// Reads `c` in one state.
    fn step(&self, (index, way): State, c: char, next: &mut States) {
        let Some(instruction) = self.0.get(index) else { return };
        if matches!(way, SegmentState::TwoStars | SegmentState::Deep) {
            return self.step_deep(instruction, (index, way), c, next);
        }
        let after = index.saturating_add(1);
        let reached = match instruction {
            Instruction::Char(expected) => {
                (c == *expected).then_some((after, SegmentState::Inside))
            }
            Instruction::One => (c != '/').then_some((after, SegmentState::Inside)),
            Instruction::Set(set) => set.contains(c).then_some((after, SegmentState::Inside)),
            Instruction::Star => (c != '/').then_some((index, SegmentState::Inside)),
            Instruction::Separator => (c == '/').then_some((after, SegmentState::SegmentStart)),
            Instruction::Branch(_) | Instruction::Jump(_) | Instruction::End => None,
        };
        if let Some(state) = reached {
            self.enter(next, state);
        }
    }

    /// Reads `c` in a `**`. It must end together with its segment of the pattern; otherwise it was
    /// no `**`.
    fn step_deep(
        &self,
        instruction: &Instruction,
        (index, way): State,
        c: char,
        next: &mut States,
    ) {
        let is_separator = matches!(instruction, Instruction::Separator);
        if !is_separator && !matches!(instruction, Instruction::End) {
            return;
        }
        self.enter(next, (index, SegmentState::Deep));
        if is_separator && c == '/' && way == SegmentState::Deep {
            self.enter(next, (index.saturating_add(1), SegmentState::SegmentStart));
        }
    }

    /// Returns whether the name may end in this state. A `**` at the end of the pattern requires at
    /// least one segment.
    fn accepts(&self, (index, way): State) -> bool {
        way != SegmentState::TwoStars && matches!(self.0.get(index), Some(Instruction::End))
    }
}

/// States of the machine at one character of the name.
struct States {
    list: Vec<State>,
    is_present: Vec<bool>,
}

impl States {
    fn new(instructions: usize) -> Self {
        Self { list: Vec::new(), is_present: vec![false; instructions.saturating_mul(WAYS)] }
    }

    /// Adds a state. Returns `false` if it was already present.
    fn insert(&mut self, (index, way): State) -> bool {
        let slot = self.is_present.get_mut(index.saturating_mul(WAYS).saturating_add(way as usize));
        let is_new = slot.is_some_and(|present| !std::mem::replace(present, true));
        if is_new {
            self.list.push((index, way));
        }
        is_new
    }

    fn clear(&mut self) {
        self.list.clear();
        self.is_present.fill(false);
    }
}
