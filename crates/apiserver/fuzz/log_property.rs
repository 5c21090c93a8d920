// SPDX-License-Identifier: Apache-2.0
//! What must hold for every file that the log reader is given. Shared by the fuzz target and a normal test.

use bivouac_apiserver::store::{FileKind, Reader};

/// Reads the bytes as they are, and once more as the contents of records with right checksums: no fuzzer finds those by
/// itself, and behind them lies the decoder.
pub fn check(data: &[u8]) {
    reads_what_is_written(data, FileKind::Log);
    reads_what_is_written(data, FileKind::Snapshot);
    reads_what_is_written(&sealed(data), FileKind::Log);
}

/// Reading ends, does not panic, and the records that were accepted are exactly the bytes that were read.
fn reads_what_is_written(file: &[u8], kind: FileKind) {
    let Ok(mut reader) = Reader::new(file, kind) else { return };
    let mut written = kind.header();
    while let Ok(Some(record)) = reader.record() {
        record.encode(&mut written);
        assert_eq!(written.len() as u64, reader.offset());
    }
    assert!(file.starts_with(&written), "a record was read that is not in the file");
}

/// Each record is a byte that gives a length, and so many bytes of payload.
fn sealed(data: &[u8]) -> Vec<u8> {
    let mut file = FileKind::Log.header();
    let mut rest = data;
    while let Some((len, behind)) = rest.split_first() {
        let (payload, next) = behind.split_at_checked(usize::from(*len)).unwrap_or((behind, &[]));
        let mut head = Vec::new();
        head.extend((payload.len() as u64).to_le_bytes());
        head.extend(2_u64.to_le_bytes());
        head.extend(crc32fast::hash(payload).to_le_bytes());
        head.extend(crc32fast::hash(&head).to_le_bytes());
        file.extend(head);
        file.extend(payload);
        rest = next;
    }
    file
}
