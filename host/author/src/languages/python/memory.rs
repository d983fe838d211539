//! Changes the memory with which a component of Python begins, where Python has no function for it.

use std::ops::Range;

use wasmparser::{Parser, Payload};

use crate::sections::address;

/// Bytes before the list of objects that `guest-sdk/python/cofferdam/_image.py` writes.
const OBJECTS: &[u8] = b"Cofferdam objects!";
/// Bytes before the list of instructions that load constants, from the same module.
const CONSTANTS: &[u8] = b"Cofferdam constants!";
/// Reference count of an immortal object of CPython 3.14 on a 32-bit platform.
const IMMORTAL: u32 = 5 << 28;
/// Larger numbers are not counts: in an object that was freed and is cached for reuse, the count is
/// replaced by the address of another one. Objects lie above the C stack, which ends here.
const COUNT_MAX: u32 = STACK[0];
/// Minimum share of the objects that become immortal, and of the listed instructions that are
/// there, in percent. Fewer mean that the layout of objects has changed.
const FOUND_PERCENT_MIN: usize = 70;
/// The limits of the C stack in the state of a thread: its top, and the addresses at which
/// recursion raises an exception and at which it ends the interpreter.
const STACK: [u32; 3] = [0x10_0000, 0x4000, 0x2000];
/// Bytes of the C stack that recursion may use. CPython only sees its stack in linear memory, which
/// has 1 MiB, but the stack of the engine has 1 MiB as well, and a function of CPython needs up to
/// ten times as much of that.
const STACK_BYTES: u32 = 96 << 10;

/// Changes the memory with which a component begins:
///
/// - Recursion in C raises `RecursionError` before the stack of the engine ends, which would be a
///   trap.
/// - Objects are immortal, so that a call does not write reference counts into most pages. Older
///   copies of the SDK do not list them.
/// - Instructions do not count references to constants, which are such objects.
///
/// Returns the problem if its memory has another layout.
pub(super) fn tune(component: &[u8]) -> Result<Vec<u8>, String> {
    let segments = segments(component).ok_or("it has no data segments at constant addresses")?;
    let mut image = Image { bytes: component.to_vec(), segments };
    limit_stack(&mut image)?;
    if make_immortal(&mut image)? {
        load_immortal(&mut image)?;
    }
    Ok(image.bytes)
}

fn limit_stack(image: &mut Image) -> Result<(), String> {
    let pattern: Vec<u8> = STACK.iter().flat_map(|word| word.to_le_bytes()).collect();
    let [top, soft, hard] = STACK;
    let &[at] = image.find(&pattern).as_slice() else {
        return Err("it has no limits of the stack, or several".to_owned());
    };
    let limit = top - STACK_BYTES;
    image.set_word(at + 4, limit);
    image.set_word(at + 8, limit - (soft - hard));
    Ok(())
}

/// Makes the listed objects immortal. Returns false if the SDK lists none.
fn make_immortal(image: &mut Image) -> Result<bool, String> {
    let Some(list) = image.list(OBJECTS)? else { return Ok(false) };
    let (types, others) = list.word(0).zip(list.word(1)).unwrap_or_default();
    let objects = types.checked_add(others).and_then(|count| list.words(2, count));
    let objects = objects.ok_or("its list of objects is short")?;
    let mut of_types: Vec<u32> =
        objects.iter().copied().take(usize::try_from(types).unwrap_or_default()).collect();
    of_types.sort_unstable();
    let mut changed = 0;
    let mut counted = 0;
    for &object in &objects {
        let Some(count) = image.word(object).filter(|count| *count < IMMORTAL) else { continue };
        counted += 1;
        // The object may have been freed since, and its memory used for something else.
        let is_object = object
            .checked_add(4)
            .and_then(|at| image.word(at))
            .is_some_and(|of| of_types.binary_search(&of).is_ok());
        if is_object && (1..COUNT_MAX).contains(&count) && image.set_word(object, IMMORTAL) {
            changed += 1;
        }
    }
    if changed * 100 < counted * FOUND_PERCENT_MIN {
        return Err(format!("only {changed} of {counted} objects look like objects"));
    }
    Ok(true)
}

/// Replaces the listed instructions, which load mortal constants, by those for immortal ones. Older
/// copies of the SDK list none.
fn load_immortal(image: &mut Image) -> Result<(), String> {
    let Some(list) = image.list(CONSTANTS)? else { return Ok(()) };
    let header = [0, 1, 2].map(|index| list.word(index));
    let [Some(count), Some(mortal), Some(immortal)] = header else {
        return Err("its list of instructions is short".to_owned());
    };
    let (Ok(mortal), Ok(immortal)) = (u8::try_from(mortal), u8::try_from(immortal)) else {
        return Err("its list of instructions names no opcodes".to_owned());
    };
    let mut found = list.words(3, count).ok_or("its list of instructions is short")?;
    let listed = found.len();
    found.retain(|address| image.byte(*address).is_some_and(|opcode| *opcode == mortal));
    if found.len() * 100 < listed * FOUND_PERCENT_MIN {
        return Err(format!("only {} of {listed} instructions are there", found.len()));
    }
    for address in found {
        if let Some(opcode) = image.byte(address) {
            *opcode = immortal;
        }
    }
    Ok(())
}

/// A component and the addresses of the data in its first core module.
struct Image {
    bytes: Vec<u8>,
    /// In the order of their addresses.
    segments: Vec<Segment>,
}

struct Segment {
    address: u32,
    /// Range of bytes in the component.
    data: Range<usize>,
}

/// Returns the data segments of the first core module of a component.
fn segments(component: &[u8]) -> Option<Vec<Segment>> {
    let data = Parser::new(0).parse_all(component).find_map(|payload| match payload {
        Ok(Payload::DataSection(data)) => Some(data),
        _ => None,
    })?;
    let mut segments = Vec::new();
    for segment in data {
        let segment = segment.ok()?;
        let data = segment.range.end - segment.data.len()..segment.range.end;
        segments.push(Segment { address: address(&segment)?, data });
    }
    segments.sort_by_key(|segment| segment.address);
    Some(segments)
}

impl Image {
    /// Returns the addresses of some bytes.
    fn find(&self, pattern: &[u8]) -> Vec<u32> {
        let found = self.segments.iter().flat_map(|segment| {
            let data = self.bytes.get(segment.data.clone()).unwrap_or_default();
            let windows = data.windows(pattern.len()).zip(0..);
            windows
                .filter(|(bytes, _)| *bytes == pattern)
                .map(|(_, at): (_, u32)| segment.address.wrapping_add(at))
        });
        found.collect()
    }

    /// Returns the list after some bytes, if there is one.
    fn list(&self, magic: &[u8]) -> Result<Option<List<'_>>, String> {
        match self.find(magic).as_slice() {
            [] => Ok(None),
            &[at] => Ok(Some(List {
                image: self,
                address: at.wrapping_add(u32::try_from(magic.len()).unwrap_or_default()),
            })),
            _ => Err(format!("it has several lists `{}`", String::from_utf8_lossy(magic))),
        }
    }

    /// Reads four bytes. Returns `None` if they are not in one data segment.
    fn word(&self, address: u32) -> Option<u32> {
        let bytes = self.bytes.get(self.range(address, 4)?)?;
        Some(u32::from_le_bytes(bytes.try_into().ok()?))
    }

    /// Writes four bytes. Returns false if they are not in one data segment.
    fn set_word(&mut self, address: u32, value: u32) -> bool {
        let range = self.range(address, 4);
        let Some(bytes) = range.and_then(|range| self.bytes.get_mut(range)) else { return false };
        bytes.copy_from_slice(&value.to_le_bytes());
        true
    }

    /// Returns a byte, if it is in a data segment.
    fn byte(&mut self, address: u32) -> Option<&mut u8> {
        let range = self.range(address, 1)?;
        self.bytes.get_mut(range.start)
    }

    /// Returns the range of some bytes in the component, if they are in one data segment.
    fn range(&self, address: u32, length: usize) -> Option<Range<usize>> {
        let after = self.segments.partition_point(|segment| segment.address <= address);
        let segment = self.segments.get(after.checked_sub(1)?)?;
        let start = segment.data.start + usize::try_from(address - segment.address).ok()?;
        (start + length <= segment.data.end).then_some(start..start + length)
    }
}

/// A list of numbers in the memory of a component.
struct List<'i> {
    image: &'i Image,
    address: u32,
}

impl List<'_> {
    fn word(&self, index: u32) -> Option<u32> {
        self.image.word(self.address.checked_add(index.checked_mul(4)?)?)
    }

    fn words(&self, first: u32, count: u32) -> Option<Vec<u32>> {
        (first..first.checked_add(count)?).map(|index| self.word(index)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A type, three objects, one that was freed, and one of another type, from address 32 on.
    const WORDS: [u32; 12] = [1, 32, 2, 32, 7, 32, COUNT_MAX, 32, 1, 99, 3, 32];

    /// Returns a component whose memory has the limits of the stack, objects, their list, and a list
    /// of instructions.
    fn component(words: &[u32], listed: &[u32], loads: &[u32]) -> Vec<u8> {
        let text = |words: &[u32]| -> String {
            words.iter().flat_map(|word| word.to_le_bytes()).map(|b| format!("\\{b:02x}")).collect()
        };
        let list = [&[1, u32::try_from(listed.len()).unwrap() - 1], listed].concat();
        let constants = [&[u32::try_from(loads.len()).unwrap(), 7, 8], loads].concat();
        let module = format!(
            r#"(component (core module (memory 32769)
                (data (i32.const 0x7fff0000) "{}")
                (data (i32.const 32) "{}")
                (data (i32.const 0x80000001) "Cofferdam objects!{}")
                (data (i32.const 0x80001000) "Cofferdam constants!{}")))"#,
            text(&STACK),
            text(words),
            text(&list),
            text(&constants),
        );
        wat::parse_str(module).unwrap()
    }

    fn word(component: &[u8], address: u32) -> Option<u32> {
        let segments = segments(component).unwrap();
        Image { bytes: component.to_vec(), segments }.word(address)
    }

    #[test]
    fn objects_become_immortal_and_recursion_is_limited() {
        let listed = [32, 40, 48, 56, 72];
        let tuned = tune(&component(&WORDS, &listed, &[])).unwrap();
        let counts = [32, 40, 48, 56, 64, 72].map(|address| word(&tuned, address).unwrap());
        assert_eq!(counts, [IMMORTAL, IMMORTAL, IMMORTAL, COUNT_MAX, 1, IMMORTAL]);
        let limits = [0x7fff_0000, 0x7fff_0004, 0x7fff_0008].map(|at| word(&tuned, at).unwrap());
        assert_eq!(limits, [0x10_0000, 0xe_8000, 0xe_6000]);
    }

    #[test]
    fn constants_are_loaded_without_counting() {
        let listed = [32, 40, 48, 56, 72];
        let tuned =
            tune(&component(&[1, 32, 2, 32, 9, 32, 1, 32, 7, 7, 3, 32], &listed, &[64, 68]));
        let tuned = tuned.unwrap();
        assert_eq!([64, 68].map(|address| word(&tuned, address)), [Some(8), Some(8)]);
        let problem = tune(&component(&WORDS, &listed, &[32, 64, 0xffff_ffff]));
        assert_eq!(problem, Err("only 0 of 3 instructions are there".to_owned()));
    }

    #[test]
    fn a_memory_of_another_layout_is_a_problem() {
        let few = component(&WORDS, &[32, 56, 64, 66], &[]);
        let longer = {
            let mut longer = component(&WORDS, &[32, 40, 48], &[]);
            let list = longer.windows(OBJECTS.len()).position(|part| part == OBJECTS).unwrap();
            longer[list + OBJECTS.len() + 4] = 200;
            longer
        };
        let none = wat::parse_str("(component (core module (memory 1)))").unwrap();
        let passive = wat::parse_str(r#"(component (core module (memory 1) (data "a")))"#).unwrap();
        let empty =
            wat::parse_str(r#"(component (core module (memory 1) (data (i32.const 0) "a")))"#);
        for (component, problem) in [
            (few, "only 1 of 4 objects look like objects"),
            (longer, "its list of objects is short"),
            (none, "it has no data segments at constant addresses"),
            (passive, "it has no data segments at constant addresses"),
            (empty.unwrap(), "it has no limits of the stack, or several"),
            (b"no component".to_vec(), "it has no data segments at constant addresses"),
        ] {
            assert_eq!(tune(&component), Err(problem.to_owned()));
        }
    }
}
