//! Regular expressions as PPL has them (Java's), for the engine (Rust's).

use crate::problem::Problem;

/// A regular expression that the engine takes.
#[derive(Debug, PartialEq, Eq)]
pub struct Regex {
    /// Its text.
    pub text: String,
    /// The names of its groups, with their numbers from 1.
    pub groups: Vec<(String, u32)>,
}

impl Regex {
    /// Reads one that begins behind the quote at `at`.
    ///
    /// # Errors
    /// It uses what the engine's expressions do not have.
    pub fn read(written: &str, at: usize) -> Result<Regex, Problem> {
        let mut out = Regex { text: String::with_capacity(written.len()), groups: Vec::new() };
        let mut rest = written;
        let (mut count, mut class) = (0, 0_usize);
        let problem = |rest: &str, message: &str| Problem::new(at + 1 + written.len() - rest.len(), message);
        while let Some(c) = rest.chars().next() {
            if let Some(literal) = rest.strip_prefix(r"\Q") {
                let (quoted, behind) = literal.split_once(r"\E").unwrap_or((literal, ""));
                for c in quoted.chars() {
                    if c.is_ascii_punctuation() {
                        out.text.push('\\');
                    }
                    out.text.push(c);
                }
                rest = behind;
                continue;
            }
            if c == '\\' {
                let escaped = rest[1..].chars().next();
                match escaped {
                    None => return Err(problem(rest, "the expression ends in a backslash; write what it escapes")),
                    Some('1'..='9' | 'k') if class == 0 => {
                        return Err(problem(
                            rest,
                            "a reference back to a group is not supported here; write the text itself",
                        ));
                    }
                    Some('h') => out.text.push_str(r"[ \t]"),
                    Some('R') => out.text.push_str(r"(?:\r\n|\n|\r)"),
                    Some('Z') => out.text.push_str(r"\z"),
                    Some('e') => out.text.push_str(r"\x1b"),
                    Some(e) => out.text.extend(['\\', e]),
                }
                rest = &rest[1 + escaped.map_or(0, char::len_utf8)..];
                continue;
            }
            if class > 0 {
                class = if c == '[' { class + 1 } else { class - usize::from(c == ']') };
            } else if c == '[' {
                class = 1;
                // A bracket that comes first is no end.
                let first = rest[1..].strip_prefix('^').unwrap_or(&rest[1..]);
                if first.starts_with(']') {
                    let skip = rest.len() - first.len() + 1;
                    out.text.push_str(&rest[..skip]);
                    rest = &rest[skip..];
                    continue;
                }
            } else if c == '(' {
                let behind = &rest[1..];
                if ["?=", "?!", "?<=", "?<!"].iter().any(|look| behind.starts_with(look)) {
                    return Err(problem(
                        rest,
                        "looking around, as in (?=…), is not supported here; match the text itself",
                    ));
                }
                if behind.starts_with("?>") {
                    return Err(problem(rest, "an atomic group, (?>…), is not supported here; write (?:…)"));
                }
                let named = behind.strip_prefix("?<").or_else(|| behind.strip_prefix("?P<"));
                if let Some(named) = named {
                    let name = named.split('>').next().unwrap_or_default();
                    let fine = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
                        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
                    if !fine || !named[name.len()..].starts_with('>') {
                        return Err(problem(
                            named,
                            "expected a group's name of letters, digits and `_`, and `>` behind it",
                        ));
                    }
                    count += 1;
                    if out.groups.iter().any(|(known, _)| known == name) {
                        return Err(problem(named, "two groups have the same name; give each its own"));
                    }
                    out.groups.push((name.to_owned(), count));
                } else if !behind.starts_with('?') {
                    count += 1;
                }
            } else if c == '+'
                && matches!(out.text.as_bytes(), [.., before, b'*' | b'+' | b'?' | b'}'] if *before != b'\\')
            {
                return Err(problem(
                    rest,
                    "a possessive quantifier, as in `a++`, is not supported here; leave out the last `+`",
                ));
            }
            out.text.push(c);
            rest = &rest[c.len_utf8()..];
        }
        Ok(out)
    }
}

/// What a match is replaced by: `$1` and `\1` as the engine has them.
pub fn replacement(written: &str) -> String {
    let mut out = String::new();
    let mut chars = written.chars().peekable();
    while let Some(c) = chars.next() {
        match (c, chars.peek()) {
            ('$' | '\\', Some(digit)) if digit.is_ascii_digit() => {
                out.push_str("${");
                while let Some(digit) = chars.next_if(char::is_ascii_digit) {
                    out.push(digit);
                }
                out.push('}');
            }
            ('\\', Some('$')) => {
                chars.next();
                out.push_str("$$");
            }
            (c, _) => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

    use super::*;

    #[test]
    fn groups_are_found_by_name_and_number() {
        let regex = Regex::read(r"(a|(?:b))\((?<x>[^()\]]+)(?<y_1>.)", 0).unwrap();
        assert_eq!(regex.groups, [("x".to_owned(), 2), ("y_1".to_owned(), 3)]);
        assert_eq!(Regex::read(r"\Qa.b\E+[]x]", 0).unwrap().text, r"a\.b+[]x]");
    }

    #[test]
    fn what_the_engine_lacks_is_told_with_its_place() {
        for (written, at) in
            [(r"a(?=b)", 2), (r"(.)\1", 4), ("a++", 3), ("(?<a b>x)", 4), ("(?<a>x)(?<a>y)", 11), (r"a\", 2)]
        {
            assert_eq!(Regex::read(written, 0).unwrap_err().at, at, "{written}");
        }
    }

    #[test]
    fn replacements_name_groups_either_way() {
        assert_eq!(replacement(r"$2/\1/x_$1y \$"), "${2}/${1}/x_${1}y $$");
    }
}
