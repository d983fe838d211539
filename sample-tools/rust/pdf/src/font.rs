//! Fonts: the characters and the widths of codes.

use lopdf::{Dictionary, Encoding, Object};

use crate::document::{Pdf, STREAM_BYTES_MAX};

/// Maximum number of codes whose widths are read.
const WIDTHS_MAX: usize = 1 << 16;

/// Font of a page.
pub(crate) struct Font<'a> {
    encoding: Option<Encoding<'a>>,
    /// True if a code has two bytes.
    is_wide: bool,
    widths: Widths,
    /// Factor from widths to the size of text.
    scale: f32,
}

struct Widths {
    /// Ranges of codes, sorted by their first one, with widths.
    known: Vec<(usize, Vec<f32>)>,
    missing: Option<f32>,
}

impl<'a> Font<'a> {
    pub(crate) fn new(pdf: &'a Pdf, font: &'a Dictionary) -> Self {
        let subtype = font.get(b"Subtype").and_then(Object::as_name).unwrap_or_default();
        let is_wide = subtype == b"Type0";
        let encoding = font.get_font_encoding_with_limit(&pdf.document, STREAM_BYTES_MAX).ok();
        let scale = match (subtype, pdf.get(font, b"FontMatrix")) {
            (b"Type3", Some(Object::Array(matrix))) => {
                matrix.first().and_then(|it| it.as_float().ok()).unwrap_or(0.001)
            }
            _ => 0.001,
        };
        let widths =
            if is_wide { Widths::of_wide(pdf, font) } else { Widths::of_simple(pdf, font) };
        Self { encoding, is_wide, widths, scale }
    }

    /// Returns the characters of codes. Unknown ones are U+FFFD.
    pub(crate) fn decode(&self, codes: &[u8]) -> String {
        let decoded = match &self.encoding {
            Some(encoding) => encoding.bytes_to_string(codes).ok(),
            None if self.is_wide => None,
            None => Some(codes.iter().map(|byte| char::from(*byte)).collect()),
        };
        let count = if self.is_wide { codes.len() / 2 } else { codes.len() };
        decoded.unwrap_or_else(|| "\u{fffd}".repeat(count))
    }

    /// Returns the width of codes for a size of 1, and the numbers of codes and of spaces.
    pub(crate) fn measure(&self, codes: &[u8]) -> (f32, usize, usize) {
        let mut width = 0.0;
        let step = if self.is_wide { 2 } else { 1 };
        for code in codes.chunks(step) {
            let code = code.iter().fold(0, |code, byte| code << 8 | usize::from(*byte));
            width += self.widths.get(code) * self.scale;
        }
        let spaces = if self.is_wide { 0 } else { codes.iter().filter(|it| **it == b' ').count() };
        (width, codes.len().div_ceil(step), spaces)
    }
}

impl Widths {
    fn of_simple(pdf: &Pdf, font: &Dictionary) -> Self {
        let first = pdf.get(font, b"FirstChar").and_then(index).unwrap_or(0);
        let Some(Object::Array(widths)) = pdf.get(font, b"Widths") else {
            return Self { known: Vec::new(), missing: None };
        };
        let missing = pdf
            .dictionary(font, b"FontDescriptor")
            .and_then(|descriptor| number(pdf, pdf.get(descriptor, b"MissingWidth")?));
        let widths = widths.iter().take(256).map(|it| number(pdf, it).unwrap_or(0.0)).collect();
        Self { known: vec![(first, widths)], missing }
    }

    fn of_wide(pdf: &Pdf, font: &Dictionary) -> Self {
        let mut widths = Self { known: Vec::new(), missing: Some(1000.0) };
        let Some(Object::Array(descendants)) = pdf.get(font, b"DescendantFonts") else {
            return widths;
        };
        let descendant = descendants.first().and_then(|it| pdf.object(it));
        let Some(Object::Dictionary(descendant)) = descendant else { return widths };
        widths.missing = pdf.get(descendant, b"DW").and_then(|it| number(pdf, it)).or(Some(1000.0));
        let Some(Object::Array(parts)) = pdf.get(descendant, b"W") else { return widths };
        let mut parts = parts.iter().filter_map(|part| pdf.object(part));
        let mut left = WIDTHS_MAX;
        while let (Some(first), Some(second)) = (parts.next(), parts.next()) {
            let Some(first) = index(first) else { break };
            let found: Vec<f32> = match second {
                Object::Array(each) => {
                    each.iter().take(left).map(|it| number(pdf, it).unwrap_or(0.0)).collect()
                }
                last => {
                    let count = index(last).and_then(|last| last.checked_sub(first)).unwrap_or(0);
                    let width = parts.next().and_then(|it| number(pdf, it)).unwrap_or(0.0);
                    vec![width; count.saturating_add(1).min(left)]
                }
            };
            left -= found.len();
            widths.known.push((first, found));
        }
        widths.known.sort_by_key(|(first, _)| *first);
        widths
    }

    fn get(&self, code: usize) -> f32 {
        let index = self.known.partition_point(|(first, _)| *first <= code);
        let known = index.checked_sub(1).and_then(|index| {
            let (first, widths) = self.known.get(index)?;
            widths.get(code - first).copied()
        });
        known.or(self.missing).unwrap_or_else(|| estimate(code))
    }
}

fn index(object: &Object) -> Option<usize> {
    usize::try_from(object.as_i64().ok()?).ok()
}

fn number(pdf: &Pdf, object: &Object) -> Option<f32> {
    pdf.object(object)?.as_float().ok().filter(|number| number.is_finite())
}

/// Estimates a width of one of the standard fonts, whose widths files leave out.
fn estimate(code: usize) -> f32 {
    match u8::try_from(code).map(char::from) {
        Ok(' ' | '!' | '\'' | '(' | ')' | ',' | '.' | '/' | ':' | ';' | 'I' | '[' | ']') => 278.0,
        Ok('f' | 'i' | 'j' | 'l' | 't' | 'r' | '|' | '-') => 278.0,
        Ok('m' | 'w' | 'M' | 'W' | '%' | '@') => 850.0,
        Ok('A'..='Z') => 680.0,
        _ => 540.0,
    }
}
