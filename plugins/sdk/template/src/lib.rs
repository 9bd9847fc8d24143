//! {{name}}: a plugin for Firesteel. Take from it what you do not need.

use firesteel_plugin::{Column, Error, Handler, Plugin, Rejection, ScalarFunction, Signature, Statement, Verdict, schema};

/// The plugin: what it is called, and what it can do.
pub fn plugin() -> Plugin {
    Plugin::new("{{name}}", env!("CARGO_PKG_VERSION"), "says hello").handler(Hello).scalar(Greet)
}

/// Statements of a language of its own: a name, which becomes SQL.
struct Hello;

impl Handler for Hello {
    fn languages(&self) -> Vec<String> {
        vec!["hello".to_owned()]
    }

    fn handle(&self, statement: &Statement) -> Verdict {
        match statement.text.trim() {
            "" => Rejection::at(1, 1, "whom to greet is missing").expecting("a name").into(),
            // Never put a text between quotes as it is.
            name => Verdict::sql(format!("SELECT 'hello {}' AS greeting", name.replace('\\', "\\\\").replace('\'', "\\'"))),
        }
    }
}

/// `greet(name)` in SQL, for a batch of rows at a time.
struct Greet;

impl ScalarFunction for Greet {
    fn signature(&self) -> Signature {
        Signature::new("greet").takes("name", schema::UTF8).returns(schema::UTF8).strict()
    }

    fn call(&self, arguments: &[Column], rows: usize) -> Result<Column, Error> {
        let names = arguments[0].texts()?;
        Ok(Column::of((0..rows).map(|row| format!("hello {}", names.get(row)))))
    }
}

firesteel_plugin::export!(plugin);

#[cfg(test)]
mod tests {
    use firesteel_plugin::testing::Host;

    use super::*;

    #[test]
    fn a_name_becomes_sql() {
        let sql = Host::new().handle(&plugin(), "hello", "world");
        assert_eq!(sql, Verdict::sql("SELECT 'hello world' AS greeting"));
    }

    #[test]
    fn names_are_greeted() {
        let greeted = Host::new().scalar(&plugin(), "greet", &[Column::of(["a", "b"])]);
        assert_eq!(greeted, Ok(Column::of(["hello a", "hello b"])));
    }
}
