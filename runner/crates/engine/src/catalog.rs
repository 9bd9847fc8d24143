//! The one catalog of a session: its data source, with the schema `default`. Names are compared without case.

use std::sync::Arc;

use datafusion::catalog::{CatalogProvider, CatalogProviderList, SchemaProvider};

use crate::tables::Tables;

/// The schema of every session.
pub const SCHEMA: &str = "default";

/// The catalog, and the list that holds only it.
#[derive(Clone, Debug)]
pub struct Catalog {
    /// The data source's name.
    pub name: String,
    /// Its schema.
    pub tables: Arc<Tables>,
}

impl CatalogProviderList for Catalog {
    fn register_catalog(&self, _name: String, _catalog: Arc<dyn CatalogProvider>) -> Option<Arc<dyn CatalogProvider>> {
        None
    }

    fn catalog_names(&self) -> Vec<String> {
        vec![self.name.clone()]
    }

    fn catalog(&self, name: &str) -> Option<Arc<dyn CatalogProvider>> {
        (name.to_lowercase() == self.name.to_lowercase()).then(|| Arc::new(self.clone()) as Arc<dyn CatalogProvider>)
    }
}

impl CatalogProvider for Catalog {
    fn schema_names(&self) -> Vec<String> {
        vec![SCHEMA.to_owned()]
    }

    fn schema(&self, name: &str) -> Option<Arc<dyn SchemaProvider>> {
        name.eq_ignore_ascii_case(SCHEMA).then(|| Arc::clone(&self.tables) as Arc<dyn SchemaProvider>)
    }
}
