//! The launch contract: the forms in which a control plane starts the job, turned into this program's own.

use firesteel_control::launch::UNUSED_OPTIONS;

use crate::problem::Problem;

/// Splits each argument that is a submit-parameter string (` --class X --conf k=v …`) into arguments; the others stay as they are.
pub fn expand(arguments: impl IntoIterator<Item = String>) -> Vec<String> {
    let mut expanded = Vec::new();
    for argument in arguments {
        if is_parameters(&argument) {
            let mut parts = tokens(&argument).into_iter();
            while let Some(part) = parts.next() {
                if UNUSED_OPTIONS.contains(&part.as_str()) {
                    parts.next();
                } else {
                    expanded.push(part);
                }
            }
        } else {
            expanded.push(argument);
        }
    }
    expanded
}

/// An option and its value in one argument, as no shell would leave them.
fn is_parameters(argument: &str) -> bool {
    let rest = argument.trim_start();
    rest.starts_with("--")
        && rest
            .split_once(char::is_whitespace)
            .is_some_and(|(first, _)| matches!(first, "--class" | "--conf") || UNUSED_OPTIONS.contains(&first))
}

/// The words of the string. A double-quoted part belongs to its word, its quotes and escapes included, so that
/// [`value`] takes both forms of `--conf` alike.
fn tokens(text: &str) -> Vec<String> {
    let mut tokens = Vec::new();
    let mut token = String::new();
    let mut chars = text.chars();
    let mut quoted = false;
    while let Some(c) = chars.next() {
        match c {
            '\\' if quoted => {
                token.push(c);
                token.extend(chars.next());
            }
            '"' => {
                quoted = !quoted;
                token.push(c);
            }
            c if c.is_whitespace() && !quoted => {
                if !token.is_empty() {
                    tokens.push(std::mem::take(&mut token));
                }
            }
            c => token.push(c),
        }
    }
    if !token.is_empty() {
        tokens.push(token);
    }
    tokens
}

/// The two halves of `--conf key=value`.
///
/// # Errors
/// There is no `=`.
pub fn pair(argument: &str) -> Result<(&str, String), Problem> {
    let argument = inner(argument);
    let Some((key, value)) = argument.split_once('=') else {
        return Err(Problem::usage_with(
            format!("--conf takes key=value, got `{}`", shortened(argument)),
            "for example --conf spark.flint.job.sessionId=my-session",
        ));
    };
    let quoted = value.len() >= 2 && value.starts_with('"') && value.ends_with('"');
    Ok((key.trim(), if quoted { unescaped(inner(value)) } else { value.to_owned() }))
}

/// Whether the value of this `--conf` was quoted, and so has been unescaped.
pub fn is_quoted(argument: &str) -> bool {
    argument
        .split_once('=')
        .is_some_and(|(_, value)| value.len() >= 2 && value.starts_with('"') && value.ends_with('"'))
}

fn inner(text: &str) -> &str {
    text.strip_prefix('"').and_then(|t| t.strip_suffix('"')).unwrap_or(text)
}

fn shortened(text: &str) -> String {
    text.chars().take(40).collect()
}

/// Java's escapes taken back: `\n`, `\"`, `\u00e9`, `\101`. Text is made of UTF-16 units there, so a pair of escapes may be one
/// character; half a pair becomes U+FFFD.
pub fn unescaped(text: &str) -> String {
    let mut units: Vec<u16> = Vec::with_capacity(text.len());
    let push = |c: char, units: &mut Vec<u16>| units.extend_from_slice(c.encode_utf16(&mut [0; 2]));
    let mut rest = text.chars().peekable();
    while let Some(c) = rest.next() {
        if c != '\\' {
            push(c, &mut units);
            continue;
        }
        match rest.next() {
            None => push('\\', &mut units),
            Some('u') => {
                while rest.next_if_eq(&'u').is_some() {}
                let digits: String = std::iter::from_fn(|| rest.next_if(char::is_ascii_hexdigit)).take(4).collect();
                match u16::from_str_radix(&digits, 16) {
                    Ok(unit) if digits.len() == 4 => units.push(unit),
                    _ => format!("\\u{digits}").chars().for_each(|c| push(c, &mut units)),
                }
            }
            Some(c @ '0'..='7') => {
                let most = if c <= '3' { 2 } else { 1 };
                let mut digits = String::from(c);
                digits.extend(std::iter::from_fn(|| rest.next_if(|c| matches!(c, '0'..='7'))).take(most));
                units.push(u16::from_str_radix(&digits, 8).unwrap_or(u16::from(b'?')));
            }
            Some('b') => push('\u{8}', &mut units),
            Some('t') => push('\t', &mut units),
            Some('n') => push('\n', &mut units),
            Some('f') => push('\u{c}', &mut units),
            Some('r') => push('\r', &mut units),
            Some(c) => push(c, &mut units),
        }
    }
    String::from_utf16_lossy(&units)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_control_planes_string_is_split_and_what_concerns_spark_alone_left_out() {
        let text = r#" --class org.apache.spark.sql.FlintREPL --jars a.jar,b.jar --conf spark.executor.cores=2  --conf spark.flint.job.query="SELECT \"a b\" --conf x=y" --conf spark.flint.job.sessionId=s"#;
        let expanded = expand(["run".to_owned(), text.to_owned(), "query_execution_result_x".to_owned()]);
        assert_eq!(
            expanded,
            [
                "run",
                "--class",
                "org.apache.spark.sql.FlintREPL",
                "--conf",
                "spark.executor.cores=2",
                "--conf",
                r#"spark.flint.job.query="SELECT \"a b\" --conf x=y""#,
                "--conf",
                "spark.flint.job.sessionId=s",
                "query_execution_result_x",
            ]
        );
    }

    #[test]
    fn what_a_shell_has_split_stays_as_it_is() {
        let arguments =
            ["submit", "SELECT 1 -- comment", "--conf", "a=b c", "-- comment first\nSELECT 2"].map(str::to_owned);
        assert_eq!(expand(arguments.clone()), arguments);
    }

    #[test]
    fn a_quoted_value_is_unescaped_once() {
        assert_eq!(pair("a=b=c").expect("a pair"), ("a", "b=c".to_owned()));
        assert_eq!(pair("a=").expect("a pair"), ("a", String::new()));
        assert_eq!(pair(r#"q="SELECT \"x\" \\n""#).expect("a pair"), ("q", r#"SELECT "x" \n"#.to_owned()));
        assert_eq!(pair(r"p=C:\new").expect("a pair"), ("p", r"C:\new".to_owned()));
        let problem = pair("novalue").expect_err("no =");
        assert_eq!(problem.to_string(), "--conf takes key=value, got `novalue`");
    }

    #[test]
    fn java_escapes() {
        for (text, expected) in [
            (r"a\tb\n\r\f\b", "a\tb\n\r\u{c}\u{8}"),
            (r#"\"\'\\\/"#, "\"'\\/"),
            (r"\u00e9\uu00e9", "éé"),
            (r"\ud83e\udd80", "🦀"),
            (r"\ud83e!", "\u{fffd}!"),
            (r"\101\7\1234", "A\u{7}S4"),
            (r"\u12", r"\u12"),
            (r"end\", r"end\"),
            ("é🦀", "é🦀"),
        ] {
            assert_eq!(unescaped(text), expected, "{text}");
        }
    }
}
