//! What `scripts/bench` compares the job with: the same query, on DataFusion itself, in this process.
//!
//! `direct QUERY TIMES TABLE=FILE...` registers Parquet files, runs the query TIMES times and prints the milliseconds of each;
//! a query that begins with COPY makes a file.

#![allow(clippy::disallowed_methods, reason = "it measures time")]

use std::time::Instant;

use datafusion::prelude::{ParquetReadOptions, SessionContext};
use futures::StreamExt as _;

type Error = Box<dyn std::error::Error + Send + Sync>;

fn main() -> Result<(), Error> {
    let mut arguments = std::env::args().skip(1);
    let query = arguments.next().ok_or("a query is missing")?;
    let times: usize = arguments.next().ok_or("the number of times is missing")?.parse()?;
    tokio::runtime::Builder::new_multi_thread().enable_all().build()?.block_on(async {
        let context = SessionContext::new();
        for table in arguments {
            let (name, file) = table.split_once('=').ok_or("a table is NAME=FILE")?;
            context.register_parquet(name, file, ParquetReadOptions::default()).await?;
        }
        for _ in 0..times {
            let began = Instant::now();
            let mut rows = 0;
            let mut batches = context.sql(&query).await?.execute_stream().await?;
            while let Some(batch) = batches.next().await {
                rows += batch?.num_rows();
            }
            println!("{} ms, {rows} rows", began.elapsed().as_secs_f64() * 1000.0);
        }
        Ok(())
    })
}
