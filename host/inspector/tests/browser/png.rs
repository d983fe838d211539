//! Pictures with a palette. They have a third of the size of those that the browser makes, and the
//! pages have few colors.

use std::collections::HashMap;
use std::io::{Read as _, Write as _};

use flate2::read::ZlibDecoder;
use flate2::write::ZlibEncoder;
use flate2::{Compression, Crc};

const SIGNATURE: &[u8] = b"\x89PNG\r\n\x1a\n";
/// Maximum number of colors of a palette. Rarer ones become similar ones.
const COLORS_MAX: usize = 256;

type Color = [u8; 3];

/// Returns a PNG of 8 bits for each of red, green and blue as one with a palette.
pub(crate) fn with_palette(png: &[u8]) -> Vec<u8> {
    let (header, pixels) = pixels(png);
    let mut counts: HashMap<Color, usize> = HashMap::new();
    for color in pixels.iter().flatten() {
        *counts.entry(*color).or_default() += 1;
    }
    let mut palette: Vec<_> = counts.into_iter().map(|(color, count)| (count, color)).collect();
    palette.sort_unstable_by(|a, b| b.cmp(a));
    palette.truncate(COLORS_MAX);
    let palette: Vec<Color> = palette.into_iter().map(|(_, color)| color).collect();
    let mut indices: HashMap<Color, u8> = HashMap::new();
    let mut lines = Vec::new();
    for line in &pixels {
        // Each line begins with its filter: none.
        lines.push(0);
        let index =
            |color: &Color| *indices.entry(*color).or_insert_with(|| nearest(&palette, *color));
        lines.extend(line.iter().map(index));
    }
    let mut data = ZlibEncoder::new(Vec::new(), Compression::best());
    data.write_all(&lines).unwrap();
    let mut small = SIGNATURE.to_vec();
    // 8 bits are an index into the palette.
    let header = [&header[..8], &[8, 3, 0, 0, 0]].concat();
    let chunks: [(&[u8; 4], Vec<u8>); 4] = [
        (b"IHDR", header),
        (b"PLTE", palette.concat()),
        (b"IDAT", data.finish().unwrap()),
        (b"IEND", Vec::new()),
    ];
    for (kind, content) in chunks {
        let mut crc = Crc::new();
        crc.update(kind);
        crc.update(&content);
        small.extend(u32::try_from(content.len()).unwrap().to_be_bytes());
        small.extend(kind);
        small.extend(content);
        small.extend(crc.sum().to_be_bytes());
    }
    small
}

fn nearest(palette: &[Color], color: Color) -> u8 {
    let distance = |known: &Color| {
        let pairs = known.iter().zip(color);
        pairs.map(|(known, part)| u32::from(known.abs_diff(part)).pow(2)).sum::<u32>()
    };
    let nearest = palette.iter().enumerate().min_by_key(|(_, known)| distance(known));
    u8::try_from(nearest.unwrap().0).unwrap()
}

/// Returns the header, and the colors of each line.
fn pixels(png: &[u8]) -> (Vec<u8>, Vec<Vec<Color>>) {
    let mut rest = png.strip_prefix(SIGNATURE).unwrap();
    let (mut header, mut data) = (Vec::new(), Vec::new());
    while let Some((length, after)) = rest.split_first_chunk::<4>() {
        let (kind, after) = after.split_at(4);
        let (content, after) = after.split_at(u32::from_be_bytes(*length).try_into().unwrap());
        match kind {
            b"IHDR" => header = content.to_vec(),
            b"IDAT" => data.extend_from_slice(content),
            _ => {}
        }
        rest = &after[4..];
    }
    assert_eq!(header[8..], [8, 2, 0, 0, 0], "the browser makes other pictures: {header:?}");
    let width = usize::try_from(u32::from_be_bytes(header[..4].try_into().unwrap())).unwrap();
    let mut bytes = Vec::new();
    ZlibDecoder::new(data.as_slice()).read_to_end(&mut bytes).unwrap();
    let mut above = vec![0; width * 3];
    let mut lines = Vec::new();
    for line in bytes.chunks_exact(width * 3 + 1) {
        let (filter, mut line) = (line[0], line[1..].to_vec());
        for at in 0..line.len() {
            let left = at.checked_sub(3).map_or(0, |left| line[left]);
            let corner = at.checked_sub(3).map_or(0, |left| above[left]);
            line[at] = line[at].wrapping_add(predicted(filter, left, above[at], corner));
        }
        lines.push(line.chunks_exact(3).map(|color| [color[0], color[1], color[2]]).collect());
        above = line;
    }
    (header, lines)
}

/// Returns the value that a filter predicts of those to the left, above, and above to the left.
fn predicted(filter: u8, left: u8, above: u8, corner: u8) -> u8 {
    match filter {
        0 => 0,
        1 => left,
        2 => above,
        3 => left.midpoint(above),
        4 => {
            let paeth = i16::from(left) + i16::from(above) - i16::from(corner);
            let distance = |of: u8| (paeth - i16::from(of)).abs();
            [left, above, corner].into_iter().min_by_key(|of| distance(*of)).unwrap()
        }
        _ => panic!("there is no filter {filter}"),
    }
}
