//! What is changed: one operator, constant, term, branch or assignment.

use std::ops::Range;

use super::lex::{Kind, Token, tokens};
use super::{Mutant, Source};

/// Operators of two operands and what they become.
const SWAPS: [(&str, &[&str]); 16] = [
    ("+", &["-"]),
    ("-", &["+"]),
    ("*", &["+"]),
    ("&&", &["||"]),
    ("||", &["&&"]),
    ("&", &["|"]),
    ("|", &["&"]),
    ("^", &["|"]),
    ("==", &["!="]),
    ("!=", &["=="]),
    ("<", &[">=", "=="]),
    (">", &["<="]),
    (">=", &["<", ">"]),
    ("<<", &[">>"]),
    (">>", &["<<"]),
    (">>>", &[">>"]),
];

/// Operators whose right operand can go.
const TERMS: [&str; 7] = ["+", "-", "&&", "||", "&", "|", "^"];

/// Every small fault of a source.
pub fn mutants(source: &Source) -> Vec<Mutant> {
    let scan = Scan {
        text: &source.text,
        tokens: tokens(&source.text),
    };
    let mut found = Vec::new();
    let mut add = |at: Range<usize>, operator, after: String| {
        found.push(Mutant {
            file: source.file.clone(),
            line: 1 + source.text[..at.start].matches('\n').count(),
            at,
            operator,
            after,
        });
    };
    for i in 0..scan.tokens.len() {
        if scan.fixed(i) {
            continue;
        }
        let at = scan.tokens[i].at.clone();
        match scan.tokens[i].kind {
            _ if scan.in_width(i) => {
                if let Some(after) = scan.narrower(i) {
                    add(at, "width", after);
                }
            }
            Kind::Number => {
                for after in constants(scan.at(i)) {
                    add(at.clone(), "constant", after);
                }
            }
            Kind::Symbol if scan.is_binary(i) => {
                let swaps = SWAPS.iter().find(|s| s.0 == scan.at(i));
                for after in swaps.map_or(&[][..], |s| s.1) {
                    add(at.clone(), "operator", (*after).into());
                }
                if TERMS.contains(&scan.at(i))
                    && let Some(end) = scan.operand(i + 1)
                {
                    add(at.start..scan.tokens[end - 1].at.end, "term", String::new());
                }
                if scan.at(i) == "<=" {
                    add(at, "operator", "<".into());
                }
            }
            Kind::Symbol => match scan.at(i) {
                "!" | "~" => add(at, "negation", String::new()),
                "&" => add(at, "operator", "|".into()),
                "|" => add(at, "operator", "&".into()),
                "?" => {
                    if let Some((colon, end)) = scan.choices(i) {
                        let first = scan.tokens[i + 1].at.start..scan.tokens[colon - 1].at.end;
                        let second = scan.tokens[colon + 1].at.start..scan.tokens[end - 1].at.end;
                        let text = |r: &Range<usize>| &source.text[r.clone()];
                        let after = format!("{} : {}", text(&second), text(&first));
                        add(first.start..second.end, "branch", after);
                    }
                }
                "<=" => {
                    if let Some(whole) = scan.assignment(i) {
                        add(whole, "assignment", ";".into());
                    }
                }
                _ => {}
            },
            Kind::Word if scan.at(i) == "if" && scan.is(i + 1, "(") && !scan.is_generate(i) => {
                if let Some(close) = scan.closing(i + 1) {
                    let at = scan.tokens[i + 1].at.start..scan.tokens[close].at.end;
                    let after = format!("(!{})", &source.text[at.clone()]);
                    add(at, "branch", after);
                }
            }
            Kind::Word => {}
        }
    }
    found
}

/// A literal with its value one more and one less, within its size.
fn constants(literal: &str) -> Vec<String> {
    match literal {
        "'0" => return vec!["'1".into()],
        "'1" => return vec!["'0".into()],
        _ => {}
    }
    let (prefix, digits, radix) = match literal.split_once('\'') {
        None => ("", literal, 10),
        Some((_, value)) => {
            let base = value.trim_start_matches(['s', 'S']);
            let radix = match base.chars().next() {
                Some('b' | 'B') => 2,
                Some('o' | 'O') => 8,
                Some('h' | 'H') => 16,
                _ => 10,
            };
            let digits = &base[1..];
            (&literal[..literal.len() - digits.len()], digits, radix)
        }
    };
    let Ok(value) = u64::from_str_radix(&digits.replace('_', ""), radix) else {
        return Vec::new();
    };
    let size = literal
        .split_once('\'')
        .and_then(|(size, _)| size.parse().ok());
    let most = match size {
        Some(bits @ 0..=63_u32) => (1 << bits) - 1,
        _ => u64::from(u32::MAX),
    };
    let text = |value: u64| {
        let digits = match radix {
            2 => format!("{value:b}"),
            8 => format!("{value:o}"),
            16 => format!("{value:X}"),
            _ => value.to_string(),
        };
        format!("{prefix}{digits}")
    };
    let more = value.checked_add(1).filter(|&v| v <= most).map(text);
    let less = value.checked_sub(1).map(text);
    more.into_iter().chain(less).collect()
}

/// The tokens of a source, looked at from one of them.
struct Scan<'a> {
    text: &'a str,
    tokens: Vec<Token>,
}

impl Scan<'_> {
    fn at(&self, i: usize) -> &str {
        self.tokens
            .get(i)
            .map_or("", |token| &self.text[token.at.clone()])
    }

    fn is(&self, i: usize, text: &str) -> bool {
        self.at(i) == text
    }

    /// Whether a token is where a change changes nothing that is built: names of modules and
    /// packages, the defaults of parameters that the instance sets, types' members.
    fn fixed(&self, i: usize) -> bool {
        let start = self.statement(i);
        let opens = |word| (start..i).any(|j| self.is(j, word));
        // Within a header of a module, a parameter's default.
        let header = self.is(start, "module") && opens("parameter") && !opens("localparam");
        self.is(start, "import") || self.is(start, "typedef") || header
    }

    /// The first token of the statement that holds token `i`.
    fn statement(&self, i: usize) -> usize {
        let ends = [";", "begin", "end", "endmodule", "endcase", "endfunction"];
        (0..i)
            .rev()
            .find(|&j| ends.contains(&self.at(j)))
            .map_or(0, |j| j + 1)
    }

    /// Whether token `i` stands in the range of a declaration.
    fn in_width(&self, i: usize) -> bool {
        let declares = [
            "logic",
            "input",
            "output",
            "localparam",
            "reg",
            "wire",
            "bit",
        ];
        let open = (0..i).rev().find(|&j| self.is(j, "[") || self.is(j, ";"));
        open.is_some_and(|open| {
            self.is(open, "[")
                && self.closing(open).is_some_and(|close| close > i)
                && (declares.contains(&self.at(open.wrapping_sub(1)))
                    || self.is(open.wrapping_sub(1), "signed"))
        })
    }

    /// The number at `i`, in the range of a declaration, such that one bit less is declared: one
    /// more would change nothing. None if it is not a number of the upper bound, or of a constant.
    fn narrower(&self, i: usize) -> Option<String> {
        if self.is(self.statement(i), "localparam") {
            return None;
        }
        let value: u64 = self.at(i).parse().ok()?;
        match (self.at(i.checked_sub(1)?), self.at(i + 1)) {
            ("-", ":") => Some((value + 1).to_string()),
            ("[", ":") => Some(value.checked_sub(1)?.to_string()),
            _ => None,
        }
    }

    /// Whether the symbol at `i` stands between two operands. `<=` does only within brackets: it
    /// assigns elsewhere.
    fn is_binary(&self, i: usize) -> bool {
        let Some(before) = i.checked_sub(1) else {
            return false;
        };
        let operand = match self.tokens[before].kind {
            Kind::Number => true,
            Kind::Word => {
                !["return", "if", "else", "begin", "case", "assign"].contains(&self.at(before))
            }
            Kind::Symbol => [")", "]", "}"].contains(&self.at(before)),
        };
        operand && !self.is(i, "?") && (!self.is(i, "<=") || self.depth(i) > 0)
    }

    /// How many round brackets of its statement are open at token `i`.
    fn depth(&self, i: usize) -> usize {
        let mut depth: usize = 0;
        for j in self.statement(i)..i {
            match self.at(j) {
                "(" => depth += 1,
                ")" => depth = depth.saturating_sub(1),
                _ => {}
            }
        }
        depth
    }

    /// The token that closes the bracket at `i`.
    fn closing(&self, i: usize) -> Option<usize> {
        let mut depth = 0;
        for j in i..self.tokens.len() {
            match self.at(j) {
                "(" | "[" | "{" => depth += 1,
                ")" | "]" | "}" => {
                    depth -= 1;
                    if depth == 0 {
                        return Some(j);
                    }
                }
                ";" => return None,
                _ => {}
            }
        }
        None
    }

    /// Past the operand that begins at token `i`.
    fn operand(&self, mut i: usize) -> Option<usize> {
        while ["!", "~", "-", "&", "|", "^"].contains(&self.at(i)) {
            i += 1;
        }
        match self.at(i) {
            "(" | "{" => i = self.closing(i)? + 1,
            _ => match self.tokens.get(i)?.kind {
                Kind::Word | Kind::Number => i += 1,
                Kind::Symbol => return None,
            },
        }
        loop {
            match self.at(i) {
                "[" | "(" => i = self.closing(i)? + 1,
                "." | "::" => i += 2,
                "'" if self.is(i + 1, "(") => i = self.closing(i + 1)? + 1,
                _ => return Some(i),
            }
        }
    }

    /// The `:` of the `?` at `i`, and past the second choice.
    fn choices(&self, i: usize) -> Option<(usize, usize)> {
        let mut colon = None;
        let mut open = 1;
        let mut j = i + 1;
        loop {
            match self.at(j) {
                "(" | "[" | "{" => j = self.closing(j)?,
                "?" if colon.is_none() => open += 1,
                ":" if colon.is_none() => {
                    open -= 1;
                    if open == 0 {
                        colon = Some(j);
                    }
                }
                "" => return None,
                ";" | "," | ")" | "]" | "}" => return colon.map(|colon| (colon, j)),
                _ => {}
            }
            j += 1;
        }
    }

    /// The whole assignment whose `<=` is at `i`, with its `;`.
    fn assignment(&self, i: usize) -> Option<Range<usize>> {
        if self.depth(i) > 0
            || !self.tokens[..i]
                .last()
                .is_some_and(|t| t.kind != Kind::Symbol || self.is(i - 1, "]"))
        {
            return None;
        }
        // From the name on: an `if (…)`, an `else` or a case's label may stand before it.
        let mut start = i - 1;
        while self.is(start, "]") {
            start = (0..start)
                .rev()
                .find(|&j| self.is(j, "["))?
                .checked_sub(1)?;
        }
        let mut end = i;
        while !self.is(end, ";") {
            end += 1;
            self.tokens.get(end)?;
        }
        Some(self.tokens[start].at.start..self.tokens[end].at.end)
    }

    /// Whether the `if` at `i` is one of the elaboration: no process encloses it.
    fn is_generate(&self, i: usize) -> bool {
        let mut j = i;
        let mut depth = 0;
        while j > 0 {
            j -= 1;
            match self.at(j) {
                "end" | "endcase" => depth += 1,
                "begin" | "case" if depth > 0 => depth -= 1,
                "always_ff" | "always_comb" | "function" if depth == 0 => return false,
                "endfunction" | "module" => return true,
                _ => {}
            }
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What each fault of `text` makes of it.
    fn faults(text: &str, operator: &str) -> Vec<String> {
        let source = Source {
            file: "a.sv".into(),
            text: text.into(),
        };
        let mutants = mutants(&source);
        let made = mutants.iter().filter(|m| m.operator == operator);
        made.map(|m| m.apply(text)).collect()
    }

    #[test]
    fn operators_between_operands_are_swapped() {
        assert_eq!(
            faults("assign a = b + c;", "operator"),
            ["assign a = b - c;"]
        );
        assert_eq!(
            faults("assign a = |b && (c <= d);", "operator"),
            [
                "assign a = &b && (c <= d);",
                "assign a = |b || (c <= d);",
                "assign a = |b && (c < d);"
            ]
        );
    }

    #[test]
    fn a_nonblocking_assignment_is_no_comparison() {
        let text = "always_ff @(posedge c) begin if (a) q[3] <= b; end";
        assert_eq!(faults(text, "operator"), [""; 0]);
        assert_eq!(
            faults(text, "assignment"),
            ["always_ff @(posedge c) begin if (a) ; end"]
        );
        assert_eq!(
            faults(text, "branch"),
            ["always_ff @(posedge c) begin if (!(a)) q[3] <= b; end"]
        );
    }

    #[test]
    fn terms_go_with_all_that_belongs_to_them() {
        assert_eq!(
            faults("assign a = b && !c[i].d(e) || 8'(f);", "term"),
            ["assign a = b  || 8'(f);", "assign a = b && !c[i].d(e) ;"]
        );
    }

    #[test]
    fn choices_are_swapped_and_negations_dropped() {
        assert_eq!(
            faults("assign a = !s ? b[1] : t ? c : d;", "branch"),
            [
                "assign a = !s ? t ? c : d : b[1];",
                "assign a = !s ? b[1] : t ? d : c;"
            ]
        );
        assert_eq!(faults("assign a = !s;", "negation"), ["assign a = s;"]);
    }

    #[test]
    fn constants_stay_within_their_size() {
        assert_eq!(constants("1'b0"), ["1'b1"]);
        assert_eq!(constants("1'b1"), ["1'b0"]);
        assert_eq!(constants("7"), ["8", "6"]);
        assert_eq!(constants("8'hFF"), ["8'hFE"]);
        assert_eq!(constants("'0"), ["'1"]);
        assert_eq!(constants("4'bxx"), [""; 0]);
    }

    #[test]
    fn widths_lose_a_bit() {
        let width = |text| faults(text, "width");
        assert_eq!(width("logic [7:0] a;"), ["logic [6:0] a;"]);
        assert_eq!(
            width("input logic signed [Width-1:0] a;"),
            ["input logic signed [Width-2:0] a;"]
        );
        assert_eq!(width("logic [0:0] a; logic b [Depth];"), [""; 0]);
        assert_eq!(width("localparam logic [7:0] A = 8'h0;"), [""; 0]);
        let text = "logic [Width-1:0] a;";
        assert_eq!(
            faults(text, "term").len() + faults(text, "operator").len(),
            0
        );
    }

    #[test]
    fn what_is_not_built_is_left_alone() {
        let text = "module m #(parameter int A = 3, localparam int B = A + 1) ();";
        let made = faults(text, "constant");
        assert!(!made.iter().any(|t| t.contains("A = 4")), "{made:?}");
        assert!(made.iter().any(|t| t.contains("A + 2")), "{made:?}");
        let generate = "module m (); if (A > 3) begin end endmodule";
        assert_eq!(faults(generate, "branch"), [""; 0]);
    }
}
