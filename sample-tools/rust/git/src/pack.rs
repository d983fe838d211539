//! Reads a pack through its index.

use std::cell::RefCell;
use std::collections::HashMap;
use std::path::Path;
use std::rc::Rc;

use flate2::{Decompress, FlushDecompress, Status};

use crate::error::Error;
use crate::id::{ID_BYTES, Id, Prefix};
use crate::objects::{Kind, OBJECT_BYTES_MAX};
use crate::pack_file::{PackFile, PackReader};

const HEADER_BYTES: u64 = 8;
const FAN_BYTES: u64 = 1024;

/// Pack with its index.
pub(crate) struct Pack {
    data: PackFile,
    index: PackFile,
    /// Numbers of objects up to and including each first byte of a name.
    fan: Vec<u32>,
    /// Names of objects by their first byte, read when they are first needed.
    names: RefCell<HashMap<u8, Rc<[u8]>>>,
}

/// Form in which an object is in a pack.
pub(crate) enum Form {
    Whole(Kind),
    /// A delta to the object at an offset of the same pack.
    DeltaToOffset(u64),
    /// A delta to a named object.
    DeltaTo(Id),
}

/// Object in a pack, before its deltas are applied.
pub(crate) struct Entry {
    pub(crate) form: Form,
    /// Size of the object, or of the delta.
    pub(crate) size: u64,
    data_offset: u64,
}

impl Pack {
    /// Opens the pack of an index, that is, the file next to it.
    pub(crate) fn open(index_path: &Path) -> Result<Self, Error> {
        let index = PackFile::open(index_path)?;
        let header = index.read(0, 8)?;
        if header != [0xff, b't', b'O', b'c', 0, 0, 0, 2] {
            return Err(Error::Damaged("a pack index does not have version 2"));
        }
        let fan: Vec<u32> =
            index.read(HEADER_BYTES, 1024)?.chunks_exact(4).map(big_endian).collect();
        let data = PackFile::open(&index_path.with_extension("pack"))?;
        let pack = Self { data, index, fan, names: RefCell::default() };
        let is_sorted = pack.fan.is_sorted();
        // A name, a checksum and an offset per object, and two names at the end.
        let needed = HEADER_BYTES + FAN_BYTES + u64::from(pack.count()) * 28 + 40;
        if !is_sorted || needed > pack.index.length {
            return Err(Error::Damaged("a pack index is inconsistent"));
        }
        Ok(pack)
    }

    /// Returns the number of objects.
    fn count(&self) -> u32 {
        self.fan.last().copied().unwrap_or_default()
    }

    /// Returns the position of the first name with this first byte.
    fn start(&self, first_byte: u8) -> u32 {
        let before = usize::from(first_byte).checked_sub(1);
        before.and_then(|before| self.fan.get(before)).copied().unwrap_or_default()
    }

    fn names(&self, first_byte: u8) -> Result<Rc<[u8]>, Error> {
        if let Some(names) = self.names.borrow().get(&first_byte) {
            return Ok(Rc::clone(names));
        }
        let start = self.start(first_byte);
        let end = self.fan.get(usize::from(first_byte)).copied().unwrap_or_default();
        let offset = HEADER_BYTES + FAN_BYTES + u64::from(start) * ID_BYTES as u64;
        let length = usize::try_from(end - start).unwrap_or_default() * ID_BYTES;
        let names: Rc<[u8]> = self.index.read(offset, length)?.into();
        self.names.borrow_mut().insert(first_byte, Rc::clone(&names));
        Ok(names)
    }

    /// Returns the offset of an object, if the pack contains it.
    pub(crate) fn find(&self, id: &Id) -> Result<Option<u64>, Error> {
        let names = self.names(id.first_byte())?;
        let (names, _) = names.as_chunks::<ID_BYTES>();
        let Ok(position) = names.binary_search(id.bytes()) else { return Ok(None) };
        let position = u64::from(self.start(id.first_byte())) + position as u64;
        self.offset(position).map(Some)
    }

    fn offset(&self, position: u64) -> Result<u64, Error> {
        let count = u64::from(self.count());
        let offsets = HEADER_BYTES + FAN_BYTES + count * (ID_BYTES as u64 + 4);
        let offset = big_endian(&self.index.read(offsets + position * 4, 4)?);
        if offset & 0x8000_0000 == 0 {
            return Ok(u64::from(offset));
        }
        let large = offsets + count * 4 + u64::from(offset & 0x7fff_ffff) * 8;
        let bytes = self.index.read(large, 8)?;
        Ok(bytes.iter().fold(0, |value, byte| value << 8 | u64::from(*byte)))
    }

    /// Adds all names that begin with `prefix`.
    pub(crate) fn find_prefix(&self, prefix: &Prefix, found: &mut Vec<Id>) -> Result<(), Error> {
        let names = self.names(prefix.first_byte())?;
        let ids = names.chunks_exact(ID_BYTES).filter_map(Id::from_bytes);
        found.extend(ids.filter(|id| prefix.matches(id)));
        Ok(())
    }

    /// Reads the header of the object at `offset`.
    pub(crate) fn entry(&self, offset: u64) -> Result<Entry, Error> {
        let mut reader = self.data.reader(offset);
        let first = reader.byte()?;
        let mut size = u64::from(first & 0x0f);
        let mut last = first;
        let mut shift = 4;
        while last & 0x80 != 0 {
            last = reader.byte()?;
            if shift > 60 {
                return Err(Error::Damaged("the size of an object is invalid"));
            }
            size |= u64::from(last & 0x7f) << shift;
            shift += 7;
        }
        let form = match first >> 4 & 7 {
            1 => Form::Whole(Kind::Commit),
            2 => Form::Whole(Kind::Tree),
            3 => Form::Whole(Kind::Blob),
            4 => Form::Whole(Kind::Tag),
            6 => {
                let base = offset.checked_sub(distance(&mut reader)?);
                let base = base.filter(|base| *base < offset);
                Form::DeltaToOffset(base.ok_or(Error::Damaged("a delta has no base"))?)
            }
            7 => {
                let mut name = [0; ID_BYTES];
                for byte in &mut name {
                    *byte = reader.byte()?;
                }
                Form::DeltaTo(Id::from_bytes(&name).ok_or(Error::Damaged("a name is invalid"))?)
            }
            _ => return Err(Error::Damaged("an object has an unknown type")),
        };
        Ok(Entry { form, size, data_offset: reader.offset })
    }

    /// Decompresses the data of an object.
    pub(crate) fn inflate(&self, entry: &Entry, z: &mut Decompress) -> Result<Vec<u8>, Error> {
        let too_large = Error::TooLarge { bytes: entry.size };
        let size = usize::try_from(entry.size).ok().filter(|size| *size <= OBJECT_BYTES_MAX);
        let size = size.ok_or(too_large)?;
        const INVALID: Error = Error::Damaged("the data of an object cannot be decompressed");
        let mut reader = self.data.reader(entry.data_offset);
        // One byte more than expected, to see the end of the data.
        let mut bytes = Vec::with_capacity(size + 1);
        z.reset(true);
        loop {
            let (read, written) = (z.total_in(), bytes.len());
            let status = z
                .decompress_vec(reader.chunk()?, &mut bytes, FlushDecompress::None)
                .map_err(|_| INVALID)?;
            let read = z.total_in() - read;
            reader.consume(read);
            match status {
                Status::StreamEnd if bytes.len() == size => return Ok(bytes),
                Status::StreamEnd => return Err(INVALID),
                _ if bytes.len() > size || (read == 0 && written == bytes.len()) => {
                    return Err(INVALID);
                }
                _ => {}
            }
        }
    }
}

/// Reads the distance from a delta to its base.
fn distance(reader: &mut PackReader<'_>) -> Result<u64, Error> {
    let mut byte = reader.byte()?;
    let mut distance = u64::from(byte & 0x7f);
    while byte & 0x80 != 0 {
        byte = reader.byte()?;
        distance = distance
            .checked_add(1)
            .and_then(|it| it.checked_mul(128))
            .ok_or(Error::Damaged("the base of a delta is invalid"))?
            | u64::from(byte & 0x7f);
    }
    Ok(distance)
}

fn big_endian(bytes: &[u8]) -> u32 {
    bytes.iter().fold(0, |value, byte| value << 8 | u32::from(*byte))
}
