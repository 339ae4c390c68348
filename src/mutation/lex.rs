//! As much of SystemVerilog's lexical structure as is needed to change an expression and nothing
//! else: comments, strings and what is kept from synthesis are left out.

use std::ops::Range;

/// What a token is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Word,
    /// A literal, with its size and base if it has them.
    Number,
    Symbol,
}

/// A token, by its place in the text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Token {
    pub kind: Kind,
    pub at: Range<usize>,
}

/// Symbols of more than one character, the longest first.
const SYMBOLS: [&str; 31] = [
    "<<<=", ">>>=", "===", "!==", "<<<", ">>>", "<<=", ">>=", "==", "!=", "&&", "||", "<=", ">=",
    "<<", ">>", "+=", "-=", "*=", "&=", "|=", "^=", "++", "--", "::", "+:", "-:", "->", "~&", "~|",
    "~^",
];

/// The tokens of `text`.
pub fn tokens(text: &str) -> Vec<Token> {
    let mut tokens = Vec::new();
    let mut at = 0;
    // Inside how many `ifdef`s, the outermost of which keeps its text from synthesis.
    let mut kept_out = 0;
    while let Some(c) = text[at..].chars().next() {
        let rest = &text[at..];
        let end = at + length(rest, c);
        let token = &text[at..end];
        match token {
            "`ifndef" if kept_out == 0 => {
                let name = text[end..].split_whitespace().next();
                kept_out = usize::from(name == Some("SYNTHESIS"));
            }
            "`ifndef" | "`ifdef" if kept_out > 0 => kept_out += 1,
            "`endif" if kept_out > 0 => kept_out -= 1,
            _ => {}
        }
        let kind = match c {
            _ if kept_out > 0 || c.is_whitespace() || c == '"' || c == '`' => None,
            '/' if rest.starts_with("//") || rest.starts_with("/*") => None,
            '$' | '_' | 'a'..='z' | 'A'..='Z' => Some(Kind::Word),
            '0'..='9' => Some(Kind::Number),
            '\'' if token.len() > 1 => Some(Kind::Number),
            _ => Some(Kind::Symbol),
        };
        if let Some(kind) = kind {
            let at = at..end;
            tokens.push(Token { kind, at });
        }
        at = end;
    }
    tokens
}

/// Bytes of the token, comment, string or blank at the start of `rest`, whose first character is `c`.
fn length(rest: &str, c: char) -> usize {
    let word = |s: &str| {
        s.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_' || c == '$'))
            .unwrap_or(s.len())
    };
    if rest.starts_with("//") {
        return rest.find('\n').unwrap_or(rest.len());
    }
    if rest.starts_with("/*") {
        return rest.find("*/").map_or(rest.len(), |end| end + 2);
    }
    match c {
        '"' => {
            let mut escaped = false;
            let closing = rest[1..].find(|c: char| {
                let closes = c == '"' && !escaped;
                escaped = c == '\\' && !escaped;
                closes
            });
            closing.map_or(rest.len(), |end| end + 2)
        }
        '`' => 1 + word(&rest[1..]),
        '\'' => 1 + based(&rest[1..]),
        '0'..='9' => {
            let size = word(rest);
            match rest[size..].strip_prefix('\'').map(based) {
                None | Some(0) => size,
                Some(value) => size + 1 + value,
            }
        }
        '$' | '_' | 'a'..='z' | 'A'..='Z' => 1 + word(&rest[1..]),
        _ => SYMBOLS
            .iter()
            .find(|s| rest.starts_with(**s))
            .map_or(c.len_utf8(), |s| s.len()),
    }
}

/// Bytes of what may follow a `'` in a literal: a base and digits, or a single 0 or 1; 0 if it is no
/// literal.
fn based(rest: &str) -> usize {
    let end = rest
        .find(|c: char| !(c.is_ascii_alphanumeric() || c == '_' || c == '?'))
        .unwrap_or(rest.len());
    let digits = rest[..end].trim_start_matches(['s', 'S']);
    match digits.chars().next() {
        Some('b' | 'B' | 'o' | 'O' | 'd' | 'D' | 'h' | 'H') => end,
        Some('0' | '1') if end == 1 => end,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<&str> {
        tokens(text)
            .into_iter()
            .map(|t| &text[t.at.clone()])
            .collect()
    }

    #[test]
    fn tokens_are_taken_whole() {
        let text = "a_q[3:0] <= b ? 5'd30 + 'h1F : '0; // x + y\nc >>> 2 /* & */ '{d: 8'(e)}";
        let expected = [
            "a_q", "[", "3", ":", "0", "]", "<=", "b", "?", "5'd30", "+", "'h1F", ":", "'0", ";",
            "c", ">>>", "2", "'", "{", "d", ":", "8", "'", "(", "e", ")", "}",
        ];
        assert_eq!(words(text), expected);
    }

    #[test]
    fn what_is_kept_from_synthesis_is_left_out() {
        let text = "a\n`ifndef SYNTHESIS\nb `ifdef X c `endif \"d\"\n`endif\n`ifndef Y\ne \"f\\\"g\"\n`endif h";
        assert_eq!(words(text), ["a", "Y", "e", "h"]);
    }
}
