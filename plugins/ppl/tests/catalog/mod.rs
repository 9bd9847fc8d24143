//! The tables of the folder `tables`, with the types that the engine finds in them.

use firesteel_ppl::{Catalog, Field, Type};

/// The catalog of these tables.
pub struct Tables;

const TABLES: &[(&str, &str)] = &[
    ("accounts", "account_number:i firstname:t lastname:t age:i gender:t balance:i employer:t email:t state:t"),
    ("events", "@timestamp:t host:t level:t message:t user:u"),
    ("logs_2024_01", "id:i code:i text:t"),
    ("logs_2024_02", "id:i code:i region:t"),
    ("numbers", "n:i x:n s:t"),
    ("visits", "at:w day:d page:t ms:i"),
    ("work_information", "uid:i name:t department:t occupation:t"),
    ("worker", "id:i name:t occupation:t country:t salary:i"),
];

impl Catalog for Tables {
    fn columns(&self, table: &[&str]) -> Option<Vec<Field>> {
        let (_, columns) =
            TABLES.iter().find(|(name, _)| table.last().is_some_and(|t| t.eq_ignore_ascii_case(name)))?;
        let field = |column: &str| {
            let (name, code) = column.split_once(':')?;
            Some(Field::new(
                name,
                match code {
                    "i" => Type::Integer,
                    "n" => Type::Number,
                    "d" => Type::Date,
                    "w" => Type::Timestamp,
                    "u" => Type::Struct(vec![Field::new("id", Type::Integer), Field::new("name", Type::Text)]),
                    _ => Type::Text,
                },
            ))
        };
        columns.split(' ').map(field).collect()
    }

    fn tables(&self) -> Vec<Vec<String>> {
        TABLES.iter().map(|(name, _)| vec!["local".to_owned(), "default".to_owned(), (*name).to_owned()]).collect()
    }
}
