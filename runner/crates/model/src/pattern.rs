//! Names with `*` for any characters: by them an operator says which sessions a process serves.

use crate::ids::BadId;

/// A name in which each `*` stands for any number of any characters.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Pattern(String);

impl Pattern {
    /// Takes the text as it is, if a name can be like it.
    ///
    /// # Errors
    /// It is empty, or longer than an id can be.
    pub fn new(text: impl Into<String>) -> Result<Pattern, BadId> {
        crate::ids::SessionId::new(text).map(|id| Pattern(id.as_str().to_owned()))
    }

    /// The pattern as it was given.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether the whole name is like this.
    #[must_use]
    pub fn matches(&self, name: &str) -> bool {
        let Some((first, others)) = self.0.split_once('*') else { return name == self.0 };
        let Some(mut rest) = name.strip_prefix(first) else { return false };
        let mut parts = others.split('*');
        let last = parts.next_back().unwrap_or_default();
        for part in parts {
            // The first place is the best: it leaves the most for what follows.
            let Some((_, after)) = rest.split_once(part) else { return false };
            rest = after;
        }
        rest.ends_with(last)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_is_any_number_of_any_characters_and_nothing_else_is_special() {
        for (pattern, like, unlike) in [
            ("*", &["a", "é*"][..], &[][..]),
            ("a", &["a"], &["", "aa", "b"]),
            ("team-*", &["team-", "team-1"], &["team", "a-team-1"]),
            ("*-x", &["-x", "a-x-x"], &["a-x-", "x"]),
            ("a*b*c", &["abc", "a-b-b-c", "abbcc"], &["ac", "abcd", "acb"]),
            ("a*a", &["aa", "aba"], &["a"]),
            ("a**b", &["ab", "axb"], &["a"]),
            ("a?[b]\\", &["a?[b]\\"], &["axb", "axb\\"]),
        ] {
            let pattern = Pattern::new(pattern).expect("short");
            for name in like {
                assert!(pattern.matches(name), "{pattern:?} {name}");
            }
            for name in unlike {
                assert!(!pattern.matches(name), "{pattern:?} {name}");
            }
        }
        assert_eq!(Pattern::new(""), Err(BadId::Empty));
    }
}
