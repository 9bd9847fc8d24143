//! Values of settings as people write them: durations, sizes, numbers.

/// What was expected instead.
pub type Expected = String;

/// A duration in milliseconds: `100ms`, `20s`, `10min`, `1h`.
pub fn duration(text: &str) -> Result<u64, Expected> {
    let (number, unit) = split(text);
    let scale = match unit {
        "ms" => 1,
        "s" => 1_000,
        "min" => 60_000,
        "h" => 3_600_000,
        _ => return Err("a duration such as 100ms, 20s or 10min".to_owned()),
    };
    number.checked_mul_by(scale).ok_or_else(|| "a duration such as 100ms, 20s or 10min".to_owned())
}

/// A size in bytes: `512MB` (of 1000), `1GiB` (of 1024), or plain bytes.
pub fn size(text: &str) -> Result<u64, Expected> {
    let (number, unit) = split(text);
    let scale = match unit.to_ascii_lowercase().as_str() {
        "" | "b" => 1,
        "kb" => 1_000,
        "mb" => 1_000_000,
        "gb" => 1_000_000_000,
        "kib" => 1 << 10,
        "mib" => 1 << 20,
        "gib" => 1 << 30,
        _ => return Err("a size such as 512MB, 1GiB or a number of bytes".to_owned()),
    };
    number.checked_mul_by(scale).ok_or_else(|| "a size such as 512MB, 1GiB or a number of bytes".to_owned())
}

/// A whole number.
pub fn number(text: &str) -> Result<u64, Expected> {
    text.parse().map_err(|_| "a whole number".to_owned())
}

/// `true` or `false`.
pub fn truth(text: &str) -> Result<bool, Expected> {
    text.parse().map_err(|_| "true or false".to_owned())
}

/// One of a few words.
pub fn one_of<T: Copy>(text: &str, words: &[(&str, T)]) -> Result<T, Expected> {
    words.iter().find(|(word, _)| *word == text).map(|(_, value)| *value).ok_or_else(|| {
        let words: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
        format!("one of {}", words.join(", "))
    })
}

/// Text that is not empty.
pub fn text(text: &str) -> Result<String, Expected> {
    if text.is_empty() { Err("some text".to_owned()) } else { Ok(text.to_owned()) }
}

/// A number, if the text begins with one.
struct Number(Option<u64>);

impl Number {
    fn checked_mul_by(&self, scale: u64) -> Option<u64> {
        self.0?.checked_mul(scale)
    }
}

fn split(text: &str) -> (Number, &str) {
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    (Number(text[..digits].parse().ok()), text[digits..].trim_start())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_carry_their_unit() {
        for (text, expected) in [("100ms", 100), ("20s", 20_000), ("10min", 600_000), ("2 h", 7_200_000), ("0s", 0)] {
            assert_eq!(duration(text), Ok(expected), "{text}");
        }
        for bad in ["", "s", "20", "1.5s", "-1s", "20 seconds", "99999999999999999999s", "18446744073709551615h"] {
            assert!(duration(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn sizes_are_bytes_or_carry_a_unit() {
        for (text, expected) in
            [("7", 7), ("1kB", 1_000), ("512MB", 512_000_000), ("1GiB", 1 << 30), ("2 MiB", 2 << 20)]
        {
            assert_eq!(size(text), Ok(expected), "{text}");
        }
        for bad in ["", "MB", "1TB", "1.5GB", "-1"] {
            assert!(size(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn one_of_names_the_words() {
        assert_eq!(one_of("b", &[("a", 1), ("b", 2)]), Ok(2));
        assert_eq!(one_of("c", &[("a", 1), ("b", 2)]), Err("one of a, b".to_owned()));
    }
}
