//! The objects of a repository: files with one object each, and packs.

use std::cell::RefCell;
use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};
use std::rc::Rc;

use flate2::Decompress;
use flate2::read::ZlibDecoder;

use crate::delta;
use crate::error::Error;
use crate::id::{Id, Prefix};
use crate::pack::{Form, Pack};

/// Maximum size of an object in memory. Larger ones are counted, but not read.
pub(crate) const OBJECT_BYTES_MAX: usize = 8 << 20;

/// Maximum number of bytes of the deltas of one object.
const DELTA_BYTES_MAX: usize = 16 << 20;

/// Git makes chains of at most 4095 deltas.
const CHAIN_MAX: usize = 4096;

/// Maximum number of bytes of recently read objects.
const CACHE_BYTES_MAX: usize = 12 << 20;

/// Maximum number of packs to open. Each takes two of the handles of a call.
const PACKS_MAX: usize = 100;

/// Maximum number of repositories that this one borrows objects from.
const ALTERNATES_MAX: usize = 4;

/// Type of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Commit,
    Tree,
    Blob,
    Tag,
}

impl Kind {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Commit => "commit",
            Self::Tree => "tree",
            Self::Blob => "file",
            Self::Tag => "tag",
        }
    }
}

/// Content of an object.
#[derive(Debug, Clone)]
pub(crate) struct Object {
    pub(crate) kind: Kind,
    pub(crate) data: Rc<[u8]>,
}

#[derive(PartialEq, Eq, Hash)]
enum ObjectLocation {
    /// Number of a pack, and an offset in it.
    Packed(usize, u64),
    Loose(Id),
}

/// All objects that a repository has.
pub(crate) struct Objects {
    folders: Vec<PathBuf>,
    packs: Vec<Pack>,
    cache: RefCell<Cache>,
    decompress: RefCell<Decompress>,
}

#[derive(Default)]
struct Cache {
    objects: HashMap<ObjectLocation, Object>,
    bytes: usize,
}

impl Objects {
    /// Opens the objects in a folder, and those in other folders that it borrows.
    pub(crate) fn open(folder: &Path) -> Result<Self, Error> {
        let mut folders = vec![folder.to_owned()];
        let mut next = 0;
        while let Some(folder) = folders.get(next) {
            let found = alternates(folder);
            folders.extend(found);
            folders.truncate(ALTERNATES_MAX + 1);
            next += 1;
        }
        let mut packs = Vec::new();
        for folder in &folders {
            let Ok(entries) = fs::read_dir(folder.join("pack")) else { continue };
            let mut indexes: Vec<_> = entries
                .flatten()
                .map(|entry| entry.path())
                .filter(|path| path.extension().is_some_and(|extension| extension == "idx"))
                .collect();
            indexes.sort();
            for index in indexes {
                if packs.len() == PACKS_MAX {
                    return Err(Error::Damaged("it has more than 100 packs; run `git gc`"));
                }
                packs.push(Pack::open(&index)?);
            }
        }
        Ok(Self {
            folders,
            packs,
            cache: RefCell::default(),
            decompress: RefCell::new(Decompress::new(true)),
        })
    }

    /// Reads an object.
    pub(crate) fn read(&self, id: &Id) -> Result<Object, Error> {
        for (number, pack) in self.packs.iter().enumerate() {
            if let Some(offset) = pack.find(id)? {
                return self.packed(number, pack, offset);
            }
        }
        let location = ObjectLocation::Loose(*id);
        if let Some(object) = self.cache.borrow().objects.get(&location) {
            return Ok(object.clone());
        }
        for folder in &self.folders {
            if let Some(object) = loose(folder, id)? {
                self.remember(location, &object);
                return Ok(object);
            }
        }
        Err(Error::Missing(*id))
    }

    /// Reads an object of one type.
    pub(crate) fn read_as(&self, id: &Id, kind: Kind) -> Result<Rc<[u8]>, Error> {
        let object = self.read(id)?;
        if object.kind == kind {
            Ok(object.data)
        } else {
            let (expected, found) = (kind.name(), object.kind.name());
            Err(Error::WrongKind { id: *id, expected, found })
        }
    }

    fn packed(&self, number: usize, pack: &Pack, offset: u64) -> Result<Object, Error> {
        let mut deltas: Vec<(u64, Vec<u8>)> = Vec::new();
        let mut delta_bytes = 0;
        let mut at = offset;
        let mut object = loop {
            if let Some(object) =
                self.cache.borrow().objects.get(&ObjectLocation::Packed(number, at))
            {
                break object.clone();
            }
            let entry = pack.entry(at)?;
            let data = pack.inflate(&entry, &mut self.decompress.borrow_mut())?;
            let base = match entry.form {
                Form::Whole(kind) => {
                    let object = Object { kind, data: data.into() };
                    self.remember(ObjectLocation::Packed(number, at), &object);
                    break object;
                }
                Form::DeltaToOffset(base) => base,
                Form::DeltaTo(id) => {
                    pack.find(&id)?.ok_or(Error::Damaged("the base of a delta is missing"))?
                }
            };
            delta_bytes += data.len();
            let size = delta::sizes(&data).map_or(0, |(_, size)| size);
            if deltas.is_empty() && size > OBJECT_BYTES_MAX {
                return Err(Error::TooLarge { bytes: size as u64 });
            }
            if delta_bytes > DELTA_BYTES_MAX || deltas.len() == CHAIN_MAX {
                return Err(Error::Damaged("an object has too many or too large deltas"));
            }
            deltas.push((at, data));
            at = base;
        };
        while let Some((at, delta)) = deltas.pop() {
            let data = delta::apply(&object.data, &delta, OBJECT_BYTES_MAX)?;
            object = Object { kind: object.kind, data: data.into() };
            self.remember(ObjectLocation::Packed(number, at), &object);
        }
        Ok(object)
    }

    fn remember(&self, location: ObjectLocation, object: &Object) {
        let mut cache = self.cache.borrow_mut();
        // An object of an eighth of the cache would displace what more calls need.
        if object.data.len() > CACHE_BYTES_MAX / 8 {
            return;
        }
        cache.bytes += object.data.len() + size_of::<(ObjectLocation, Object)>();
        if cache.bytes > CACHE_BYTES_MAX {
            cache.objects.clear();
            cache.bytes = object.data.len();
        }
        cache.objects.insert(location, object.clone());
    }

    /// Returns all objects whose names begin with `prefix`, sorted.
    pub(crate) fn find_prefix(&self, prefix: &Prefix) -> Result<Vec<Id>, Error> {
        let mut found = Vec::new();
        for pack in &self.packs {
            pack.find_prefix(prefix, &mut found)?;
        }
        let first = format!("{:02x}", prefix.first_byte());
        for folder in &self.folders {
            let Ok(entries) = fs::read_dir(folder.join(&first)) else { continue };
            let ids = entries.flatten().filter_map(|entry| {
                let name = format!("{first}{}", entry.file_name().to_str()?);
                Id::from_hex(name.as_bytes())
            });
            found.extend(ids.filter(|id| prefix.matches(id)));
        }
        found.sort_unstable();
        found.dedup();
        Ok(found)
    }
}

/// Returns the folders that a folder of objects borrows from and that have relative paths:
/// absolute paths mean nothing in a mount.
fn alternates(folder: &Path) -> Vec<PathBuf> {
    let listed = fs::read_to_string(folder.join("info/alternates")).unwrap_or_default();
    listed
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with(['#', '/', '"']))
        .map(|line| folder.join(line))
        .collect()
}

/// Reads the file of an object, if there is one.
fn loose(folder: &Path, id: &Id) -> Result<Option<Object>, Error> {
    const INVALID: Error = Error::Damaged("the file of an object is invalid");
    let name = id.to_string();
    let (first, rest) = name.split_at(2);
    let file = match File::open(folder.join(first).join(rest)) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    let mut decoder = ZlibDecoder::new(file);
    let mut header = Vec::new();
    loop {
        let mut byte = [0];
        decoder.read_exact(&mut byte).map_err(|_| INVALID)?;
        let [byte] = byte;
        if byte == 0 {
            break;
        }
        header.push(byte);
        if header.len() > 32 {
            return Err(INVALID);
        }
    }
    let header = String::from_utf8(header).map_err(|_| INVALID)?;
    let (kind, size) = header.split_once(' ').ok_or(INVALID)?;
    let kind = match kind {
        "commit" => Kind::Commit,
        "tree" => Kind::Tree,
        "blob" => Kind::Blob,
        "tag" => Kind::Tag,
        _ => return Err(INVALID),
    };
    let bytes: u64 = size.parse().map_err(|_| INVALID)?;
    let size = usize::try_from(bytes).ok().filter(|size| *size <= OBJECT_BYTES_MAX);
    let size = size.ok_or(Error::TooLarge { bytes })?;
    let mut data = Vec::with_capacity(size);
    decoder.take(bytes.saturating_add(1)).read_to_end(&mut data).map_err(|_| INVALID)?;
    if data.len() != size {
        return Err(INVALID);
    }
    Ok(Some(Object { kind, data: data.into() }))
}
