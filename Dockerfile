# syntax=docker/dockerfile:1
# The runner, in an image that holds it and the sample data. `docker compose up` starts it beside an OpenSearch.
FROM rust:1.95-bookworm AS build
WORKDIR /source
COPY . .
RUN --mount=type=cache,target=/usr/local/cargo/registry --mount=type=cache,target=/source/target \
    cargo build --release --locked && cp target/release/firesteel /usr/local/bin/firesteel

FROM debian:bookworm-slim
RUN apt-get update && apt-get install -y --no-install-recommends ca-certificates && rm -rf /var/lib/apt/lists/* \
    && useradd --create-home --uid 10001 firesteel
COPY --from=build /usr/local/bin/firesteel /usr/local/bin/firesteel
COPY sample-data /data
USER firesteel
# SIGTERM lets it finish or stop the running statement and end its session; give it its grace (20 s) and a little more.
STOPSIGNAL SIGTERM
ENTRYPOINT ["firesteel"]
CMD ["run", "--data", "/data"]
