//! A row of a result document taken apart: each column's JSON text as it stands there, so that no digit is lost.

use std::io;

/// The members of the row, in their order: name, and the text of the value.
///
/// # Errors
/// `InvalidData`: it is no JSON object.
pub fn members(row: &str) -> io::Result<Vec<(String, &str)>> {
    let bad = || io::Error::new(io::ErrorKind::InvalidData, "a row of the result is no JSON object");
    let mut rest = row.trim().strip_prefix('{').and_then(|r| r.strip_suffix('}')).ok_or_else(bad)?.trim();
    let mut members = Vec::new();
    while !rest.is_empty() {
        let end = value_end(rest).filter(|_| rest.starts_with('"')).ok_or_else(bad)?;
        let name: String = serde_json::from_str(&rest[..end]).map_err(|_| bad())?;
        rest = rest[end..].trim_start().strip_prefix(':').ok_or_else(bad)?.trim_start();
        let end = value_end(rest).ok_or_else(bad)?;
        members.push((name, rest[..end].trim_end()));
        rest = rest[end..].trim_start();
        if let Some(next) = rest.strip_prefix(',') {
            rest = next.trim_start();
        } else if !rest.is_empty() {
            return Err(bad());
        }
    }
    Ok(members)
}

/// The row as standard JSON: another program's rows may be quoted by apostrophes, ours hold none.
pub fn standard(row: &str) -> std::borrow::Cow<'_, str> {
    if row.contains('\'') { row.replace('\'', "\"").into() } else { row.into() }
}

/// The text of a value: a string's characters, anything else as it stands.
pub fn text(json: &str) -> String {
    if json.starts_with('"') { serde_json::from_str(json).unwrap_or_else(|_| json.to_owned()) } else { json.to_owned() }
}

/// Where the value that the text begins with ends.
fn value_end(text: &str) -> Option<usize> {
    let mut depth = 0_u32;
    let mut in_string = false;
    let mut escaped = false;
    for (at, byte) in text.bytes().enumerate() {
        if in_string {
            match byte {
                _ if escaped => escaped = false,
                b'\\' => escaped = true,
                b'"' => {
                    in_string = false;
                    if depth == 0 {
                        return Some(at + 1);
                    }
                }
                _ => {}
            }
            continue;
        }
        match byte {
            b'"' => in_string = true,
            b'{' | b'[' => depth += 1,
            b'}' | b']' => {
                depth = depth.checked_sub(1)?;
                if depth == 0 {
                    return Some(at + 1);
                }
            }
            b',' if depth == 0 => return (at > 0).then_some(at),
            _ => {}
        }
    }
    (depth == 0 && !in_string && !text.is_empty()).then_some(text.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_digit_of_every_value_is_kept() {
        let row = r#"{"a":12345678901234567890.10,"b":"x,\"}\\", "" : [1,{"c":"]"}],"d":{"e":{}},"f":true}"#;
        let members = members(row).expect("an object");
        let expected = [
            ("a", "12345678901234567890.10"),
            ("b", r#""x,\"}\\""#),
            ("", r#"[1,{"c":"]"}]"#),
            ("d", r#"{"e":{}}"#),
            ("f", "true"),
        ];
        assert_eq!(members.iter().map(|(name, json)| (name.as_str(), *json)).collect::<Vec<_>>(), expected);
        assert_eq!(super::members("{}").expect("an object"), []);
        assert_eq!(text(expected[1].1), "x,\"}\\");
    }

    #[test]
    fn what_is_no_object_is_an_error() {
        for bad in ["", "[]", "{", r#"{"a"}"#, r#"{"a":}"#, r#"{"a":1 "b":2}"#, r#"{a:1}"#, r#"{"a":"x}"#, r#"{"a":]}"#]
        {
            assert!(members(bad).is_err(), "{bad}");
        }
    }
}
