// SPDX-License-Identifier: Apache-2.0
//! How a version lies on disk.
//!
//! A file is a header and then records. All numbers are little-endian.
//!
//! | part | bytes |
//! |---|---|
//! | file header | `BIVOUAC`, kind `L` or `S`, format `u32`, CRC of these 12 |
//! | record header | payload length `u64`, revision `u64`, CRC of the payload, CRC of these 20 |
//! | payload of a version | operation, four lengths (`u64`: keyspace, key, key with labels, all text), keyspace, text, body |
//! | payload of a snapshot's end | operation, number of versions `u64` |
//!
//! The header of a record has a checksum of its own. So a length can be trusted, and a write that was cut off (the file
//! ends within a record whose beginning is sound) differs from damage (something is there, and it is wrong).

use std::io::{self, Read};

use super::super::stored::{Keyspace, Stored};

/// The format this code writes, and the newest it reads.
pub const FORMAT: u32 = 1;

const MAGIC: &[u8; 7] = b"BIVOUAC";
const PUT: u8 = b'P';
const DELETE: u8 = b'D';
const END: u8 = b'E';

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileKind {
    Log,
    Snapshot,
}

#[derive(Debug, PartialEq, Eq)]
pub enum Record {
    Put(Keyspace, Stored),
    Delete(Keyspace, Stored),
    /// The last record of a snapshot: its revision, and how many versions came before.
    End {
        revision: u64,
        versions: u64,
    },
}

/// Why a file cannot be read on. Offsets are those of the record, not of the byte in it.
#[derive(Debug, thiserror::Error)]
pub enum Fault {
    #[error("cannot read: {0}")]
    Io(#[from] io::Error),
    /// The last write did not get through.
    #[error("the file ends within a record that begins at byte {offset}")]
    Torn { offset: u64 },
    #[error("byte {offset}: {found}")]
    Damaged { offset: u64, found: String },
    #[error("format {found} is newer than format {FORMAT}")]
    Newer { found: u32 },
}

/// Reads one file from its beginning.
pub struct Reader<R> {
    input: R,
    offset: u64,
}

// === writing ===

impl FileKind {
    pub fn header(self) -> Vec<u8> {
        let mut out = MAGIC.to_vec();
        out.push(self.mark());
        out.extend(FORMAT.to_le_bytes());
        out.extend(crc32fast::hash(&out).to_le_bytes());
        out
    }

    fn mark(self) -> u8 {
        match self {
            Self::Log => b'L',
            Self::Snapshot => b'S',
        }
    }
}

impl Record {
    /// Appends the record as it lies on disk.
    pub fn encode(&self, out: &mut Vec<u8>) {
        match self {
            Self::Put(keyspace, stored) => version(out, PUT, keyspace, stored),
            Self::Delete(keyspace, stored) => version(out, DELETE, keyspace, stored),
            Self::End { revision, versions } => frame(out, *revision, &[&[END], &versions.to_le_bytes()]),
        }
    }
}

fn version(out: &mut Vec<u8>, operation: u8, keyspace: &Keyspace, stored: &Stored) {
    let (text, [key_end, labels_end]) = stored.text();
    let lengths = [keyspace.as_str().len(), key_end, labels_end, text.len()].map(|len| (len as u64).to_le_bytes());
    let (space, text) = (keyspace.as_str().as_bytes(), text.as_bytes());
    frame(out, stored.revision(), &[&[operation], lengths.as_flattened(), space, text, stored.body()]);
}

fn frame(out: &mut Vec<u8>, revision: u64, payload: &[&[u8]]) {
    let mut sum = crc32fast::Hasher::new();
    payload.iter().for_each(|part| sum.update(part));
    let len: usize = payload.iter().map(|part| part.len()).sum();
    let mut head = Vec::with_capacity(24);
    head.extend((len as u64).to_le_bytes());
    head.extend(revision.to_le_bytes());
    head.extend(sum.finalize().to_le_bytes());
    head.extend(crc32fast::hash(&head).to_le_bytes());
    out.reserve(head.len() + len);
    out.extend(head);
    payload.iter().for_each(|part| out.extend_from_slice(part));
}

// === impl Reader ===

impl<R: Read> Reader<R> {
    /// Reads the header of the file.
    pub fn new(input: R, kind: FileKind) -> Result<Self, Fault> {
        let mut reader = Self { input, offset: 0 };
        let header = match reader.exactly::<16>()? {
            Some(header) => header,
            None => return Err(Fault::Torn { offset: 0 }),
        };
        let mut parts = Slicer(&header);
        let magic = parts.array::<7>();
        let mark = parts.array();
        let format = parts.array().map(u32::from_le_bytes).unwrap_or_default();
        if parts.array().map(u32::from_le_bytes) != header.get(..12).map(crc32fast::hash) {
            return Err(reader.zeros_or("the checksum of the file's header is wrong", &header));
        }
        if format > FORMAT {
            return Err(Fault::Newer { found: format });
        }
        if (magic, mark, format) != (Some(*MAGIC), Some([kind.mark()]), FORMAT) {
            return Err(reader.damaged("this is not the header of such a file"));
        }
        reader.offset = 16;
        Ok(reader)
    }

    /// Where the next record begins.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// The next record, or none if the file ends here.
    pub fn record(&mut self) -> Result<Option<Record>, Fault> {
        let Some(header) = self.exactly::<24>()? else { return Ok(None) };
        let mut parts = Slicer(&header);
        let (Some(len), Some(revision), Some(sum), Some(own_sum)) =
            (parts.number(), parts.number(), parts.array().map(u32::from_le_bytes), parts.array())
        else {
            return Err(self.damaged("the header of a record is too short"));
        };
        if header.get(..20).map(crc32fast::hash) != Some(u32::from_le_bytes(own_sum)) {
            return Err(self.zeros_or("the checksum of a record's header is wrong", &header));
        }
        let mut payload = Vec::new();
        self.input.by_ref().take(len).read_to_end(&mut payload)?;
        if (payload.len() as u64) < len {
            return Err(Fault::Torn { offset: self.offset });
        }
        if crc32fast::hash(&payload) != sum {
            return Err(self.damaged("the checksum of a record is wrong"));
        }
        let record =
            decode(revision, &payload).ok_or_else(|| self.damaged("a record does not have the right shape"))?;
        self.offset += 24 + len;
        Ok(Some(record))
    }

    /// None if the file ends right here. It is torn if it ends within these bytes.
    fn exactly<const N: usize>(&mut self) -> Result<Option<[u8; N]>, Fault> {
        let mut found = Vec::with_capacity(N);
        self.input.by_ref().take(N as u64).read_to_end(&mut found)?;
        match found.try_into() {
            Ok(whole) => Ok(Some(whole)),
            Err(part) if part.is_empty() => Ok(None),
            Err(_) => Err(Fault::Torn { offset: self.offset }),
        }
    }

    /// After a power cut a file can be longer than what was written to it, and then it ends in zeros. That is a torn
    /// write too: no record begins with zeros.
    fn zeros_or(&mut self, found: &str, header: &[u8]) -> Fault {
        let mut rest = Vec::new();
        match self.input.read_to_end(&mut rest) {
            Err(error) => Fault::Io(error),
            Ok(_) if header.iter().chain(&rest).all(|byte| *byte == 0) => Fault::Torn { offset: self.offset },
            Ok(_) => self.damaged(found),
        }
    }

    fn damaged(&self, found: &str) -> Fault {
        Fault::Damaged { offset: self.offset, found: found.to_owned() }
    }
}

fn decode(revision: u64, payload: &[u8]) -> Option<Record> {
    let mut parts = Slicer(payload);
    let [operation] = parts.array()?;
    if operation == END {
        let versions = parts.number()?;
        return parts.0.is_empty().then_some(Record::End { revision, versions });
    }
    let [space, key_end, labels_end, text] = [parts.number()?, parts.number()?, parts.number()?, parts.number()?];
    let keyspace = Keyspace::from_name(str::from_utf8(parts.take(space)?).ok()?);
    let text = str::from_utf8(parts.take(text)?).ok()?;
    let ends = [usize::try_from(key_end).ok()?, usize::try_from(labels_end).ok()?];
    let stored = Stored::from_text(revision, text, ends, parts.0)?;
    match operation {
        PUT => Some(Record::Put(keyspace, stored)),
        DELETE => Some(Record::Delete(keyspace, stored)),
        _ => None,
    }
}

/// Takes bytes from the front.
struct Slicer<'a>(&'a [u8]);

impl<'a> Slicer<'a> {
    fn take(&mut self, len: u64) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(usize::try_from(len).ok()?)?;
        self.0 = rest;
        Some(taken)
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (taken, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*taken)
    }

    fn number(&mut self) -> Option<u64> {
        self.array().map(u64::from_le_bytes)
    }
}
