//! Columns that come, go, and get other names.

use super::scope::same;
use super::{Column, Pipeline};
use crate::catalog::Type;
use crate::sql::Sql;
use crate::value::Value;

impl Pipeline<'_> {
    /// Adds a column, in place of one that has the name.
    pub fn set(&mut self, name: &str, value: Value) {
        let column = Column {
            name: name.to_owned(),
            data_type: value.data_type,
            sql: value.sql,
            input: None,
            base: name.to_owned(),
            qualifiers: Vec::new(),
            hidden: false,
        };
        self.put(column);
    }

    /// The same for a column that is there already.
    pub fn put(&mut self, column: Column) {
        match self.find(&column.name) {
            Some(at) => {
                let old = std::mem::replace(&mut self.select.columns[at], column);
                self.hide(old);
            }
            None => self.select.columns.push(column),
        }
    }

    /// Adds a column that no user sees, and gives its name.
    pub fn hidden(&mut self, sql: Sql) -> String {
        let name = self.fresh();
        let column = Column {
            name: name.clone(),
            data_type: Type::Unknown,
            sql,
            input: None,
            base: name.clone(),
            qualifiers: Vec::new(),
            hidden: true,
        };
        self.select.columns.push(column);
        name
    }

    fn fresh(&self) -> String {
        let taken = |name: &str| {
            self.select.columns.iter().any(|c| same(&c.name, name))
                || self.select.inputs.iter().flatten().any(|c| same(c, name))
        };
        (1..).map(|n| format!("__{n}")).find(|name| !taken(name)).unwrap_or_default()
    }

    /// Keeps a column that is gone for the order that hangs on it.
    fn hide(&mut self, mut column: Column) {
        if self.order.iter().any(|(key, _)| *key == column.name) {
            let name = self.fresh();
            self.order.iter_mut().filter(|(key, _)| *key == column.name).for_each(|(key, _)| key.clone_from(&name));
            column.name = name;
            column.hidden = true;
            self.select.columns.push(column);
        }
    }

    /// Takes a column away.
    pub fn drop(&mut self, name: &str) {
        if let Some(at) = self.find(name) {
            let old = self.select.columns.remove(at);
            self.hide(old);
        }
    }

    /// Leaves these columns, in this order.
    pub fn keep(&mut self, names: &[String]) {
        let (hidden, mut old): (Vec<Column>, Vec<Column>) =
            std::mem::take(&mut self.select.columns).into_iter().partition(|c| c.hidden);
        for name in names {
            if let Some(at) = old.iter().position(|c| c.name == *name) {
                self.select.columns.push(old.remove(at));
            }
        }
        self.select.columns.extend(hidden);
        old.into_iter().for_each(|c| self.hide(c));
    }

    /// Gives a column another name; one that has it is gone.
    pub fn rename(&mut self, from: &str, to: &str) {
        let Some(at) = self.find(from) else { return };
        let old = self.select.columns[at].name.clone();
        if old == to {
            return;
        }
        if !same(&old, to) {
            self.drop(to);
        }
        self.order.iter_mut().filter(|(key, _)| *key == old).for_each(|(key, _)| to.clone_into(key));
        if let Some(column) = self.select.columns.iter_mut().find(|c| c.name == old) {
            to.clone_into(&mut column.name);
            to.clone_into(&mut column.base);
        }
    }
}
