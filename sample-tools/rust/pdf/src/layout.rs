//! Puts pieces of text with positions into lines.

/// Position of a piece of text that is shown in one go.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Piece {
    /// Position of its start on the baseline.
    pub(crate) x: f32,
    pub(crate) y: f32,
    /// Position of its end.
    pub(crate) end_x: f32,
    pub(crate) end_y: f32,
    /// Height of the text.
    pub(crate) size: f32,
}

/// Gap between pieces that is a space, as a part of the height.
const SPACE: f32 = 0.16;

/// Gap between pieces that separates columns, as a part of the height.
const COLUMN: f32 = 2.0;

/// Distance of baselines from which pieces are on different lines, as a part of the height.
const LINE: f32 = 0.5;

/// Distance of baselines from which a paragraph begins, as a part of the height.
const PARAGRAPH: f32 = 1.9;

/// Lines of text, joined from pieces in the order in which the page shows them. That keeps columns
/// apart.
#[derive(Default)]
pub(crate) struct Lines {
    text: String,
    last: Option<Piece>,
}

impl Lines {
    pub(crate) fn push(&mut self, added: &str, piece: Piece) {
        if added.is_empty() {
            return;
        }
        let text = &mut self.text;
        if let Some(last) = self.last {
            let size = last.size.max(piece.size).max(0.1);
            // Along the direction of the text before, and across it.
            let (dx, dy) = direction(&last);
            let (gap_x, gap_y) = (piece.x - last.end_x, piece.y - last.end_y);
            let along = gap_x * dx + gap_y * dy;
            let across = (gap_y * dx - gap_x * dy).abs();
            if across > LINE * size || along < -size * COLUMN {
                end_line(text, across > PARAGRAPH * size);
            } else if along > COLUMN * size {
                text.push_str("  ");
            } else if along > SPACE * size
                && !text.ends_with(char::is_whitespace)
                && !added.starts_with(char::is_whitespace)
            {
                text.push(' ');
            }
        }
        text.push_str(added);
        self.last = Some(piece);
    }

    /// Moves the end of the last piece.
    pub(crate) fn extend_to(&mut self, (x, y): (f32, f32)) {
        if let Some(last) = &mut self.last {
            (last.end_x, last.end_y) = (x, y);
        }
    }

    /// Returns the text.
    pub(crate) fn finish(mut self) -> String {
        end_line(&mut self.text, false);
        if self.text == "\n" { String::new() } else { self.text }
    }
}

/// Returns the direction of a piece with length 1.
fn direction(piece: &Piece) -> (f32, f32) {
    let (x, y) = (piece.end_x - piece.x, piece.end_y - piece.y);
    let length = x.hypot(y);
    if length > f32::EPSILON { (x / length, y / length) } else { (1.0, 0.0) }
}

fn end_line(text: &mut String, is_paragraph: bool) {
    text.truncate(text.trim_end_matches([' ', '\t']).len());
    text.push('\n');
    if is_paragraph && !text.ends_with("\n\n") {
        text.push('\n');
    }
}

#[cfg(test)]
mod tests {
    use super::{Lines, Piece};

    fn lines(pieces: &[(&str, Piece)]) -> String {
        let mut lines = Lines::default();
        for (text, piece) in pieces {
            lines.push(text, *piece);
        }
        lines.finish()
    }

    fn piece(text: &str, x: f32, y: f32) -> (&str, Piece) {
        let end_x = x + 5.0 * text.chars().count() as f32;
        (text, Piece { x, y, end_x, end_y: y, size: 10.0 })
    }

    #[test]
    fn gaps_separate_words_lines_and_paragraphs() {
        let pieces = [
            piece("ab", 0.0, 100.0),
            piece("c", 10.5, 100.0),
            piece("d ", 18.0, 101.0),
            piece("e", 30.0, 100.0),
            piece("f", 90.0, 100.0),
            piece("g", 0.0, 88.0),
            piece("h", 0.0, 60.0),
            piece("column", 300.0, 100.0),
        ];
        assert_eq!(lines(&pieces), "abc d e  f\ng\n\nh\n\ncolumn\n");
        assert_eq!(lines(&[]), "");
    }

    #[test]
    fn text_may_go_up() {
        let up = |text, y| (text, Piece { x: 5.0, y, end_x: 5.0, end_y: y + 5.0, size: 10.0 });
        assert_eq!(lines(&[up("a", 0.0), up("b", 5.0), up("c", 13.0)]), "ab c\n");
    }
}
