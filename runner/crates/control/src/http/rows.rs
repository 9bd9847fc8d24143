//! Rows as arrays of values in the order of the columns, each value's text as it stands in the result, so that no digit is lost.

use std::collections::HashMap;
use std::io;

use firesteel_session::ports::Column;
use firesteel_session::result::row;

use crate::refusal::Refusal;

/// Appends the rows, as a JSON array of arrays.
pub fn append(out: &mut String, columns: &[Column], rows: &[String]) -> Result<(), Refusal> {
    let broken = |e: io::Error| Refusal::Broken(format!("the result cannot be read: {e}"));
    out.push('[');
    for (n, text) in rows.iter().enumerate() {
        let text = row::standard(text);
        let members: HashMap<String, &str> = row::members(&text).map_err(broken)?.into_iter().collect();
        if n > 0 {
            out.push(',');
        }
        out.push('[');
        for (n, column) in columns.iter().enumerate() {
            if n > 0 {
                out.push(',');
            }
            out.push_str(members.get(&column.name).copied().unwrap_or("null"));
        }
        out.push(']');
    }
    out.push(']');
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_is_an_array_in_the_columns_order_with_its_digits_and_nulls() {
        let column = |name: &str| Column { name: name.to_owned(), data_type: "string".to_owned(), label: None };
        let rows = [r#"{"b":"x","a":1.10}"#, r#"{"a_1":12345678901234567890,"b":"it\u0027s"}"#].map(str::to_owned);
        let mut out = String::new();
        append(&mut out, &[column("a"), column("a_1"), column("b")], &rows).expect("rows");
        assert_eq!(out, r#"[[1.10,null,"x"],[null,12345678901234567890,"it\u0027s"]]"#);
        assert!(append(&mut out, &[column("a")], &["[1]".to_owned()]).is_err());
    }
}
