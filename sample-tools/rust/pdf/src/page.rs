//! Reads the text of a page from its drawing operations.

use std::collections::HashMap;

use lopdf::content::{Content, Operation};
use lopdf::{DecompressError, Dictionary, Error, Object, ObjectId, Stream};

use crate::document::{Pdf, STREAM_BYTES_MAX};
use crate::font::Font;
use crate::layout::{Lines, Piece};

/// Maximum depth of forms, which are drawings in drawings.
const FORM_DEPTH_MAX: usize = 8;

/// Maximum number of operations of a page with its forms.
const OPERATIONS_MAX: usize = 500_000;

/// Maximum number of characters of a page.
const CHARACTERS_MAX: usize = 1 << 20;

/// Maximum depth of saved states.
const STATES_MAX: usize = 256;

/// Operator that is appended to the content to see that it was decoded to its end.
const END: &str = "EndOfContent";

/// Adjustment between strings, in thousandths of the size, from which it is a space.
const SPACE_ADJUSTMENT: f32 = 180.0;

/// Text of a page.
pub(crate) struct PageText {
    pub(crate) text: String,
    /// Number of images that the page draws.
    pub(crate) images: usize,
    /// True if operations or characters were left out because of a limit, or do not parse.
    pub(crate) is_partial: bool,
}

/// Reads a page.
pub(crate) fn read(pdf: &Pdf, page: ObjectId) -> PageText {
    let mut reader = Reader {
        pdf,
        lines: Lines::default(),
        fonts: HashMap::new(),
        operations: OPERATIONS_MAX,
        characters: CHARACTERS_MAX,
        images: 0,
        is_partial: false,
    };
    let content = reader.content(page);
    let (own, others) = pdf.document.get_page_resources(page).unwrap_or_default();
    let mut resources: Vec<&Dictionary> = own.into_iter().collect();
    resources.extend(others.iter().filter_map(|id| pdf.document.get_dictionary(*id).ok()));
    reader.run(content, &resources, State::default(), 0);
    PageText { text: reader.lines.finish(), images: reader.images, is_partial: reader.is_partial }
}

/// Transformation of coordinates: `[a b c d e f]` of the format.
#[derive(Clone, Copy)]
struct Matrix([f32; 6]);

impl Matrix {
    const IDENTITY: Self = Self([1.0, 0.0, 0.0, 1.0, 0.0, 0.0]);

    fn translation(x: f32, y: f32) -> Self {
        Self([1.0, 0.0, 0.0, 1.0, x, y])
    }

    fn from_numbers(numbers: &[f32]) -> Option<Self> {
        numbers.try_into().ok().map(Self)
    }

    /// Returns the transformation that applies `self` first.
    fn then(self, next: Self) -> Self {
        let ([a, b, c, d, e, f], [g, h, i, j, k, l]) = (self.0, next.0);
        Self([
            a * g + b * i,
            a * h + b * j,
            c * g + d * i,
            c * h + d * j,
            e * g + f * i + k,
            e * h + f * j + l,
        ])
    }

    fn origin(self) -> (f32, f32) {
        let [.., x, y] = self.0;
        (x, y)
    }

    /// Returns the factor for heights.
    fn height(self) -> f32 {
        let [_, _, c, d, ..] = self.0;
        c.hypot(d)
    }
}

#[derive(Clone, Copy)]
struct State {
    transform: Matrix,
    text: Matrix,
    line: Matrix,
    font: Option<FontKey>,
    size: f32,
    character_space: f32,
    word_space: f32,
    scale: f32,
    leading: f32,
    rise: f32,
}

impl Default for State {
    fn default() -> Self {
        Self {
            transform: Matrix::IDENTITY,
            text: Matrix::IDENTITY,
            line: Matrix::IDENTITY,
            font: None,
            size: 1.0,
            character_space: 0.0,
            word_space: 0.0,
            scale: 1.0,
            leading: 0.0,
            rise: 0.0,
        }
    }
}

impl State {
    fn next_line(&mut self, x: f32, y: f32) {
        self.line = Matrix::translation(x, y).then(self.line);
        self.text = self.line;
    }

    /// Moves the position along the line.
    fn advance(&mut self, distance: f32) {
        self.text = Matrix::translation(distance, 0.0).then(self.text);
    }

    /// Returns the transformation from the current position to the page.
    fn position(&self) -> Matrix {
        Matrix::translation(0.0, self.rise).then(self.text).then(self.transform)
    }
}

/// Address of the dictionary of a font. It does not change while the document is read.
type FontKey = *const Dictionary;

struct Reader<'a> {
    pdf: &'a Pdf,
    lines: Lines,
    fonts: HashMap<FontKey, Font<'a>>,
    /// Numbers of operations and characters that are left.
    operations: usize,
    characters: usize,
    images: usize,
    is_partial: bool,
}

impl<'a> Reader<'a> {
    /// Returns the decompressed content of a page.
    fn content(&mut self, page: ObjectId) -> Vec<u8> {
        let document = &self.pdf.document;
        let mut content = Vec::new();
        let ids = document.get_page_contents(page);
        if ids.is_empty() {
            let page = document.get_dictionary(page).ok();
            let contents = page.and_then(|page| self.pdf.get(page, b"Contents"));
            self.is_partial |=
                contents.is_some_and(|it| !matches!(it, Object::Array(_) | Object::Null));
        }
        for id in ids {
            let Ok(stream) = document.get_object(id).and_then(Object::as_stream) else {
                self.is_partial = true;
                continue;
            };
            let left = STREAM_BYTES_MAX.saturating_sub(content.len());
            match stream.decompressed_content_with_limit(left) {
                Ok(data) => {
                    // A stream without a length is read as an empty one.
                    let has_more = !stream.content.is_empty() || !stream.dict.has(b"Length");
                    self.is_partial |= data.is_empty() && has_more;
                    content.extend_from_slice(&data);
                }
                Err(Error::Decompress(DecompressError::MemoryLimitExceeded { .. })) => {
                    self.is_partial = true;
                    break;
                }
                Err(_) => {
                    self.is_partial = true;
                    // Some filters that are not supported leave the content as it is.
                    content.extend(stream.content.iter().take(left));
                }
            }
            content.push(b'\n');
        }
        content
    }

    fn run(
        &mut self,
        mut content: Vec<u8>,
        resources: &[&'a Dictionary],
        start: State,
        depth: usize,
    ) {
        content.push(b'\n');
        content.extend(END.bytes());
        let mut state = start;
        let mut saved = Vec::new();
        let mut is_complete = false;
        // One at a time: all operations of a large page have many times the size of its content.
        for operation in Content::decode_iter(&content) {
            let Ok(operation) = operation else {
                self.is_partial = true;
                return;
            };
            if operation.operator == END {
                is_complete = true;
                continue;
            }
            if self.operations == 0 || self.characters == 0 {
                self.is_partial = true;
                return;
            }
            self.operations -= 1;
            match operation.operator.as_str() {
                "q" if saved.len() < STATES_MAX => saved.push(state),
                "Q" => state = saved.pop().unwrap_or(state),
                "Do" => self.draw(&operation, resources, state, depth),
                "BI" => self.images += 1,
                "Tf" => self.select_font(&operation, resources, &mut state),
                _ => self.step(&operation, &mut state),
            }
        }
        // Decoding ends without an error at what is no operation.
        self.is_partial |= !is_complete;
    }

    fn step(&mut self, operation: &Operation, state: &mut State) {
        let numbers: Vec<f32> =
            operation.operands.iter().filter_map(|it| it.as_float().ok()).collect();
        let first = numbers.first().copied();
        match operation.operator.as_str() {
            "cm" => {
                if let Some(matrix) = Matrix::from_numbers(&numbers) {
                    state.transform = matrix.then(state.transform);
                }
            }
            "BT" => (state.text, state.line) = (Matrix::IDENTITY, Matrix::IDENTITY),
            "Tc" => state.character_space = first.unwrap_or(0.0),
            "Tw" => state.word_space = first.unwrap_or(0.0),
            "Tz" => state.scale = first.unwrap_or(100.0) / 100.0,
            "TL" => state.leading = first.unwrap_or(0.0),
            "Ts" => state.rise = first.unwrap_or(0.0),
            "Td" | "TD" => {
                if let [x, y] = numbers.as_slice() {
                    if operation.operator == "TD" {
                        state.leading = -y;
                    }
                    state.next_line(*x, *y);
                }
            }
            "Tm" => {
                if let Some(matrix) = Matrix::from_numbers(&numbers) {
                    (state.text, state.line) = (matrix, matrix);
                }
            }
            "T*" => state.next_line(0.0, -state.leading),
            "Tj" => self.show(operation.operands.first(), state),
            "'" | "\"" => {
                if let [word, character] = numbers.as_slice() {
                    (state.word_space, state.character_space) = (*word, *character);
                }
                state.next_line(0.0, -state.leading);
                self.show(operation.operands.last(), state);
            }
            "TJ" => {
                if let Some(Object::Array(parts)) = operation.operands.first() {
                    for part in parts {
                        match part.as_float() {
                            Ok(adjustment) => self.adjust(adjustment, state),
                            Err(_) => self.show(Some(part), state),
                        }
                    }
                }
            }
            _ => {}
        }
    }

    /// Moves the position between two strings.
    fn adjust(&mut self, adjustment: f32, state: &mut State) {
        state.advance(-adjustment / 1000.0 * state.size * state.scale);
        // Kerning is no gap, also where a width is an estimate.
        if adjustment > -SPACE_ADJUSTMENT {
            self.lines.extend_to(state.position().origin());
        }
    }

    fn show(&mut self, string: Option<&Object>, state: &mut State) {
        let Some(Object::String(codes, _)) = string else { return };
        let Some(font) = state.font.and_then(|key| self.fonts.get(&key)) else {
            self.is_partial = true;
            return;
        };
        let text: String = font
            .decode(codes)
            .chars()
            .take(self.characters)
            .map(|it| if it.is_control() { ' ' } else { it })
            .collect();
        self.characters -= text.chars().count();
        let (width, codes, spaces) = font.measure(codes);
        let spacing = state.character_space * codes as f32 + state.word_space * spaces as f32;
        let position = state.position();
        let (x, y) = position.origin();
        let size = position.height() * state.size.abs();
        state.advance((width * state.size + spacing) * state.scale);
        let (end_x, end_y) = state.position().origin();
        if [x, y, end_x, end_y, size].iter().all(|number| number.is_finite()) {
            self.lines.push(&text, Piece { x, y, end_x, end_y, size });
        }
    }

    fn select_font(
        &mut self,
        operation: &Operation,
        resources: &[&'a Dictionary],
        state: &mut State,
    ) {
        let [Object::Name(name), size] = operation.operands.as_slice() else { return };
        state.size = size.as_float().unwrap_or(1.0);
        let font = self.resource(resources, b"Font", name);
        let Some(Object::Dictionary(font)) = font else {
            state.font = None;
            return;
        };
        let key = std::ptr::from_ref(font);
        state.font = Some(key);
        self.fonts.entry(key).or_insert_with(|| Font::new(self.pdf, font));
    }

    /// Draws an image or a form.
    fn draw(
        &mut self,
        operation: &Operation,
        resources: &[&'a Dictionary],
        mut state: State,
        depth: usize,
    ) {
        let Some(Object::Name(name)) = operation.operands.first() else { return };
        let Some(Object::Stream(stream)) = self.resource(resources, b"XObject", name) else {
            return;
        };
        match stream.dict.get(b"Subtype").and_then(Object::as_name) {
            Ok(b"Image") => self.images += 1,
            Ok(b"Form") if depth < FORM_DEPTH_MAX => {
                let Ok(content) = stream.get_plain_content_with_limit(STREAM_BYTES_MAX) else {
                    self.is_partial = true;
                    return;
                };
                if let Some(matrix) = self.matrix(stream) {
                    state.transform = matrix.then(state.transform);
                }
                let own = self.pdf.dictionary(&stream.dict, b"Resources");
                let all: Vec<_> = own.into_iter().chain(resources.iter().copied()).collect();
                self.run(content, &all, state, depth + 1);
            }
            Ok(b"Form") => self.is_partial = true,
            _ => {}
        }
    }

    fn matrix(&self, form: &Stream) -> Option<Matrix> {
        let Some(Object::Array(numbers)) = self.pdf.get(&form.dict, b"Matrix") else { return None };
        let numbers: Vec<f32> = numbers.iter().filter_map(|it| it.as_float().ok()).collect();
        Matrix::from_numbers(&numbers)
    }

    fn resource(
        &self,
        resources: &[&'a Dictionary],
        kind: &[u8],
        name: &[u8],
    ) -> Option<&'a Object> {
        let pdf = self.pdf;
        resources.iter().find_map(|resources| pdf.get(pdf.dictionary(resources, kind)?, name))
    }
}
