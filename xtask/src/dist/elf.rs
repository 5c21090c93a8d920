// SPDX-License-Identifier: Apache-2.0
//! Whether a program is static, from its own headers.

use anyhow::{Context, Result, bail};

const INTERPRETER: u64 = 3;

/// The loader that a dynamic program asks for; a static one asks for none.
pub fn interpreter(file: &[u8]) -> Result<Option<String>> {
    if file.get(..6) != Some(b"\x7fELF\x02\x01") {
        bail!("this is no 64-bit little-endian ELF file");
    }
    let (table, size, count) = (number(file, 32, 8)?, number(file, 54, 2)?, number(file, 56, 2)?);
    for entry in (0..count).map(|index| table + index * size) {
        if number(file, entry, 4)? == INTERPRETER {
            let (start, length) = (number(file, entry + 8, 8)?, number(file, entry + 32, 8)?);
            let name = bytes(file, start, length)?;
            return Ok(Some(String::from_utf8_lossy(name).trim_end_matches('\0').to_owned()));
        }
    }
    Ok(None)
}

/// Whether a program itself defines a symbol, from its symbol table.
pub fn defines(file: &[u8], symbol: &str) -> Result<bool> {
    const SYMBOLS: u64 = 2;
    const ENTRY: u64 = 24;
    let (table, size, count) = (number(file, 40, 8)?, number(file, 58, 2)?, number(file, 60, 2)?);
    let header = |index: u64| table + index * size;
    let section = |index: u64| bytes(file, number(file, header(index) + 24, 8)?, number(file, header(index) + 32, 8)?);
    let mut found = None;
    for index in 0..count {
        if number(file, header(index) + 4, 4)? == SYMBOLS {
            found = Some((section(index)?, section(number(file, header(index) + 40, 4)?)?));
        }
    }
    let Some((symbols, names)) = found else { bail!("the program was stripped of its symbols") };
    let wanted = format!("{symbol}\0");
    for at in (0..symbols.len() as u64).step_by(ENTRY as usize) {
        let (name, section) = (usize::try_from(number(symbols, at, 4)?)?, number(symbols, at + 6, 2)?);
        // Section 0 is for what others define.
        if section != 0 && names.get(name..).is_some_and(|rest| rest.starts_with(wanted.as_bytes())) {
            return Ok(true);
        }
    }
    Ok(false)
}

fn bytes(file: &[u8], start: u64, length: u64) -> Result<&[u8]> {
    let (start, length) = (usize::try_from(start)?, usize::try_from(length)?);
    let end = start.checked_add(length).context("a header is wrong")?;
    file.get(start..end).context("the file ends too early")
}

fn number(file: &[u8], start: u64, length: u64) -> Result<u64> {
    Ok(bytes(file, start, length)?.iter().rev().fold(0, |value, byte| value << 8 | u64::from(*byte)))
}

#[cfg(test)]
mod tests {
    use super::{defines, interpreter};

    #[test]
    fn this_test_is_dynamic() {
        let own = std::fs::read(std::env::current_exe().unwrap()).unwrap();
        assert!(interpreter(&own).unwrap().unwrap().contains("ld-linux"));
    }

    #[test]
    fn this_test_defines_main_and_only_uses_others() {
        let own = std::fs::read(std::env::current_exe().unwrap()).unwrap();
        assert!(defines(&own, "main").unwrap());
        assert!(!defines(&own, "getrandom").unwrap() && !defines(&own, "mai").unwrap());
    }

    #[test]
    fn a_program_without_loader_is_static_and_rubbish_is_an_error() {
        let mut file = b"\x7fELF\x02\x01".to_vec();
        file.resize(64, 0);
        assert_eq!(interpreter(&file).unwrap(), None);
        file[54] = 56;
        file[56] = 1;
        file[33] = 1;
        assert!(interpreter(&file).unwrap_err().to_string().contains("ends too early"));
        assert!(interpreter(b"#!/bin/sh").is_err());
    }
}
