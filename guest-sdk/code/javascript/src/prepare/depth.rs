//! Estimates how deep the syntax tree of a program can be, before it is parsed.
//!
//! The parser and the walk over its tree are recursive, and a stack overflow would be a trap. In the
//! tree, `a + a + a` and `if (a) if (b)` are as deep as they are long. The estimate is never too low
//! by much, and only too high for programs with hundreds of operators in one statement.

/// Maximum estimate. At twice this value, the stack of 1 MiB overflows.
const DEPTH_MAX: usize = 1000;
/// What a bracket counts; an operator counts 1.
const BRACKET: usize = 5;

/// Returns the offset at which a program becomes too deep.
pub(super) fn too_deep(code: &str) -> Option<usize> {
    let mut scanner = Scanner { bytes: code.as_bytes(), ..Scanner::default() };
    while scanner.at < scanner.bytes.len() {
        scanner.token();
        if scanner.depth > DEPTH_MAX {
            return Some(scanner.at);
        }
    }
    None
}

#[derive(Default)]
struct Scanner<'c> {
    bytes: &'c [u8],
    at: usize,
    /// Estimate for the current position.
    depth: usize,
    /// Estimates before the open brackets.
    open: Vec<usize>,
    /// Estimate at the start of a statement between the innermost brackets.
    base: usize,
    /// Last byte that is no blank.
    last: u8,
    /// Whether a line has ended since that byte.
    is_new_line: bool,
    /// Whether the line begins with `if` or another word that a statement follows.
    is_header: bool,
    /// Whether the last token is such a word.
    is_last_header: bool,
}

impl Scanner<'_> {
    fn peek(&self, distance: usize) -> u8 {
        self.bytes.get(self.at + distance).copied().unwrap_or_default()
    }

    fn token(&mut self) {
        let byte = self.peek(0);
        match byte {
            b'\n' => self.is_new_line = true,
            b' ' | b'\t' | b'\r' => {}
            b'/' if self.peek(1) == b'/' => return self.skip_to(b"\n"),
            b'/' if self.peek(1) == b'*' => return self.skip_to(b"*/"),
            b'\'' | b'"' => {
                self.end_line(byte);
                self.string(byte);
                self.last = byte;
            }
            _ if is_word(byte) => return self.word(),
            _ => {
                self.end_line(byte);
                self.punctuation(byte);
                self.last = byte;
            }
        }
        self.at += 1;
    }

    /// Ends the statement if a line has ended after it and `next` does not continue it.
    fn end_line(&mut self, next: u8) {
        if !std::mem::take(&mut self.is_new_line) {
            return;
        }
        let is_end = (is_word(self.last) && !self.is_last_header)
            || matches!(self.last, b'\'' | b'"' | b'`' | b']' | b'}')
            || (self.last == b')' && !self.is_header);
        if is_end && (is_word(next) || matches!(next, b'\'' | b'"' | b'{' | b'}')) {
            self.depth = self.base;
        }
        self.is_header = false;
    }

    fn word(&mut self) {
        let start = self.at;
        while is_word(self.peek(0)) {
            self.at += 1;
        }
        let word = self.bytes.get(start..self.at).unwrap_or_default();
        let is_first = self.is_new_line;
        match word {
            // Continues the statement before it.
            b"else" | b"catch" | b"finally" => self.is_new_line = false,
            _ => self.end_line(b'a'),
        }
        self.is_last_header = matches!(word, b"if" | b"for" | b"while" | b"else" | b"do" | b"with");
        if is_first || start == 0 {
            self.is_header = self.is_last_header;
        }
        if is_word(self.last) || matches!(self.last, b')' | b'}') {
            self.depth += 1;
        }
        self.last = b'a';
    }

    fn punctuation(&mut self, byte: u8) {
        match byte {
            b'(' | b'[' | b'{' => {
                self.open.push(self.base);
                self.open.push(self.depth);
                self.depth += BRACKET;
                self.base = self.depth;
            }
            b')' | b']' | b'}' => {
                self.depth = self.open.pop().unwrap_or_default() + 1;
                self.base = self.open.pop().unwrap_or_default();
            }
            b',' | b';' => self.depth = self.base,
            b'`' => self.depth += 1,
            byte if byte.is_ascii_punctuation() => self.depth += 1,
            _ => {}
        }
    }

    /// Moves to the end of a string, or of its line.
    fn string(&mut self, quote: u8) {
        loop {
            self.at += 1;
            match self.peek(0) {
                b'\\' => self.at += 1,
                byte if byte == quote || byte == b'\n' || self.at >= self.bytes.len() => return,
                _ => {}
            }
        }
    }

    /// Moves behind the next `end`.
    fn skip_to(&mut self, end: &[u8]) {
        let rest = self.bytes.get(self.at..).unwrap_or_default();
        let found = rest.windows(end.len()).skip(1).position(|window| window == end);
        self.at += found.map_or(rest.len(), |at| at + 1);
        if end.len() > 1 {
            self.at += end.len();
        }
    }
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$') || byte >= 0x80
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deep_programs_are_found() {
        let repeat = |text: &str| text.repeat(50_000);
        for program in [
            repeat("("),
            repeat("[[],"),
            repeat("!"),
            repeat("a=>"),
            repeat("if(1)"),
            repeat("if(1)\n"),
            repeat("if (a) {} else "),
            repeat("a+"),
            format!("a{}", repeat("\n.a")),
            format!("a{}", repeat("()")),
            repeat("typeof "),
            repeat("do\n"),
            repeat("a?b:"),
            repeat("`${"),
        ] {
            assert!(too_deep(&program).is_some(), "{}", program.get(..20).unwrap());
        }
    }

    #[test]
    fn long_programs_are_not_deep() {
        let repeat = |text: &str| text.repeat(50_000);
        for program in [
            repeat("const a = 1\n"),
            repeat("a(b.c);\n"),
            repeat("a(b)\n"),
            repeat("if (a) { b() } else { c() }\n"),
            repeat("// ((((((\n"),
            repeat("/* (((((( */\n"),
            format!("[{}]", repeat("1.5, ")),
            format!("[{}]", repeat("{\"a\": -1},\n")),
            format!("'{}'", repeat("+/(")),
            repeat("function a(b) {\n  return b.c + 1\n}\n"),
            repeat("\n"),
            repeat("x = y\n\n"),
        ] {
            assert_eq!(too_deep(&program), None, "{}", program.get(..20).unwrap());
        }
    }
}
