//! Pieces of text that are not whole characters.

/// Puts pieces together and gives out whole characters as soon as they are there.
#[derive(Default)]
pub struct TextStream(Vec<u8>);

impl TextStream {
    /// Takes a piece in and returns the text that is whole with it. Bytes that cannot become a
    /// character are replaced by U+FFFD.
    pub fn push(&mut self, piece: &[u8]) -> String {
        self.0.extend_from_slice(piece);
        let mut text = String::new();
        loop {
            match std::str::from_utf8(&self.0) {
                Ok(whole) => {
                    text.push_str(whole);
                    self.0.clear();
                    return text;
                }
                Err(e) => {
                    let (whole, rest) = self.0.split_at(e.valid_up_to());
                    text.push_str(&String::from_utf8_lossy(whole));
                    let Some(bad) = e.error_len() else {
                        // The start of a character whose end is to come.
                        self.0 = rest.to_vec();
                        return text;
                    };
                    text.push(char::REPLACEMENT_CHARACTER);
                    self.0 = rest[bad..].to_vec();
                }
            }
        }
    }

    /// What is left when no piece comes any more.
    pub fn finish(self) -> String {
        String::from_utf8_lossy(&self.0).into_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn characters_come_out_whole() {
        let mut stream = TextStream::default();
        let bytes = "aß€😀z".as_bytes();
        let mut pieces = bytes.iter().map(|b| stream.push(&[*b]));
        let out: Vec<String> = pieces.by_ref().collect();
        let lens: Vec<usize> = out.iter().map(String::len).collect();
        assert_eq!(lens, [1, 0, 2, 0, 0, 3, 0, 0, 0, 4, 1]);
        assert_eq!(out.concat(), "aß€😀z");
        assert_eq!(stream.finish(), "");
    }

    #[test]
    fn bytes_that_are_no_text_are_replaced() {
        let mut stream = TextStream::default();
        assert_eq!(stream.push(b"a\xFFb\xE2\x82"), "a\u{FFFD}b");
        assert_eq!(stream.push(b"x"), "\u{FFFD}x");
        assert_eq!(stream.push(b"\xF0\x9F"), "");
        assert_eq!(stream.finish(), "\u{FFFD}");
    }
}
