//! What a masked column shows.

/// A kind of mask.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Null,
    Redact,
    Hash,
    Year,
    First(u16),
    Last(u16),
}

impl Kind {
    /// Reads its name.
    ///
    /// # Errors
    /// There is none such.
    pub fn read(name: &str) -> Result<Kind, String> {
        let number = |prefix: &str| name.strip_prefix(prefix).and_then(|n| n.parse::<u16>().ok());
        Ok(match name {
            "null" => Kind::Null,
            "redact" => Kind::Redact,
            "hash" => Kind::Hash,
            "year" => Kind::Year,
            _ => match (number("keep-first-"), number("keep-last-")) {
                (Some(n), _) => Kind::First(n),
                (_, Some(n)) => Kind::Last(n),
                _ => {
                    return Err(format!(
                        "there is no mask `{name}`; there are null, redact, hash, year, keep-first-N and keep-last-N"
                    ));
                }
            },
        })
    }

    /// SQL of the column's type. Where a mask says nothing about a type, the column is null.
    pub fn expression(self, column: &str, data_type: &str) -> String {
        let text = data_type == "Utf8";
        let stars = |count: String| format!("repeat('*', CAST({count} AS INT))");
        match self {
            Kind::Redact if text => format!("CASE WHEN {column} IS NOT NULL THEN '***' END"),
            Kind::Hash if text => format!("CASE WHEN {column} IS NOT NULL THEN sha2({column}, CAST(256 AS INT)) END"),
            Kind::Year if data_type.starts_with("Timestamp") => format!("date_trunc('year', {column})"),
            Kind::Year if data_type == "Date32" => format!("CAST(date_trunc('year', {column}) AS DATE)"),
            // What is no longer than what is kept would be shown whole.
            Kind::First(n) if text => format!(
                "CASE WHEN character_length({column}) > {n} THEN concat(left({column}, {n}), {}) WHEN {column} IS NOT NULL THEN {} END",
                stars(format!("character_length({column}) - {n}")),
                stars(format!("character_length({column})")),
            ),
            Kind::Last(n) if text => format!(
                "CASE WHEN character_length({column}) > {n} THEN concat({}, right({column}, {n})) WHEN {column} IS NOT NULL THEN {} END",
                stars(format!("character_length({column}) - {n}")),
                stars(format!("character_length({column})")),
            ),
            _ => format!("CASE WHEN false THEN {column} END"),
        }
    }
}
