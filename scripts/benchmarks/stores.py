"""The two stores as any client of the documents sees them: insert, look, cancel, read the result."""

import http.client
import json
import sqlite3
import time
import urllib.parse
import uuid

TERMINAL = ("success", "failed", "timeout", "cancelled")


def statement(session, query):
    return {
        "version": "1.0", "type": "statement", "state": "waiting", "statementId": "st-" + uuid.uuid4().hex,
        "sessionId": session, "applicationId": "", "jobId": "", "lang": "sql", "dataSourceName": "local", "query": query,
        "queryId": "q-" + uuid.uuid4().hex, "submitTime": int(time.time() * 1000), "error": "",
    }


def session(name):
    return {
        "version": "1.0", "type": "session", "sessionType": "interactive", "sessionId": name, "state": "not_started",
        "dataSourceName": "local", "applicationId": "", "jobId": "", "lastUpdateTime": int(time.time() * 1000), "error": "",
    }


class Sqlite:
    """A file that `firesteel` made."""

    REQUESTS, RESULTS = 0, 1
    PAUSE = 0.0005  # seconds between two looks for a result: one costs some 20 µs

    def __init__(self, path, synchronous):
        self.path, self.synchronous = path, synchronous
        self.name = f"SQLite {synchronous.upper()}"
        self.options = ["--store", str(path), "--durability", synchronous]
        self.db = None

    def connect(self):
        """Once the file is made."""
        self.db = sqlite3.connect(self.path, timeout=30, isolation_level=None)
        self.db.execute(f"PRAGMA synchronous = {self.synchronous}")

    def insert(self, documents):
        self.db.execute("BEGIN IMMEDIATE")
        for d in documents:
            (seq,) = self.db.execute("UPDATE counter SET seq_no = seq_no + 1 RETURNING seq_no").fetchone()
            key = d["statementId"] if d["type"] == "statement" else d["sessionId"]
            self.db.execute("INSERT INTO documents (collection, id, seq_no, json) VALUES (?, ?, ?, ?)",
                            (self.REQUESTS, key, seq, json.dumps(d)))
        self.db.execute("COMMIT")

    def states(self, keys):
        marks = ",".join("?" * len(keys))
        rows = self.db.execute(f"SELECT id, json ->> '$.state' FROM documents WHERE collection = {self.REQUESTS} AND id IN ({marks})", keys)
        return dict(rows.fetchall())

    def cancel(self, key):
        self.db.execute("BEGIN IMMEDIATE")
        (seq,) = self.db.execute("UPDATE counter SET seq_no = seq_no + 1 RETURNING seq_no").fetchone()
        self.db.execute("""UPDATE documents SET seq_no = ?, json = json_patch(json, '{"state":"cancelled"}')
                           WHERE collection = ? AND id = ? AND json ->> '$.state' IN ('waiting', 'running')""", (seq, self.REQUESTS, key))
        self.db.execute("COMMIT")

    def result(self, query_id):
        row = self.db.execute(f"SELECT json FROM documents WHERE collection = {self.RESULTS} AND query_id = ?", (query_id,)).fetchone()
        return json.loads(row[0]) if row else None


class OpenSearch:
    """The indices of a server, over one kept connection."""

    PAUSE = 0.005  # a search takes milliseconds of the node that is measured

    def __init__(self, url, suffix):
        self.url, self.name = url, "OpenSearch"
        self.requests, self.results = f"bench_requests_{suffix}", f"bench_results_{suffix}"
        self.parts = urllib.parse.urlsplit(url)
        self.connection = http.client.HTTPConnection(self.parts.hostname, self.parts.port, timeout=60)
        self.options = ["--store", url, "--request-index", self.requests, "--result-index", self.results]

    def connect(self):
        """Nothing is to be opened."""

    def call(self, method, path, body=None, lines=False):
        kind = "application/x-ndjson" if lines else "application/json"
        data = body if lines or body is None else json.dumps(body)
        self.connection.request(method, path, data, {"Content-Type": kind} if data is not None else {})
        response = self.connection.getresponse()
        answer = json.loads(response.read() or "{}")
        if response.status >= 400 and response.status != 404:
            raise RuntimeError(f"{method} {path}: {response.status} {answer}")
        return answer

    def insert(self, documents):
        text = ""
        for d in documents:
            key = d["statementId"] if d["type"] == "statement" else d["sessionId"]
            text += json.dumps({"create": {"_id": key}}) + "\n" + json.dumps(d) + "\n"
        answer = self.call("POST", f"/{self.requests}/_bulk?refresh=true", text, lines=True)
        assert not answer["errors"], answer

    def states(self, keys):
        answer = self.call("POST", f"/{self.requests}/_mget?_source=state", {"ids": list(keys)})
        return {d["_id"]: d.get("_source", {}).get("state") for d in answer["docs"]}

    def cancel(self, key):
        key = urllib.parse.quote(key, safe="")
        found = self.call("GET", f"/{self.requests}/_doc/{key}")
        if found["_source"]["state"] in TERMINAL:
            return  # what has ended is not cancelled any more
        at = f"if_seq_no={found['_seq_no']}&if_primary_term={found['_primary_term']}"
        self.call("POST", f"/{self.requests}/_update/{key}?{at}", {"doc": {"state": "cancelled"}})

    def result(self, query_id):
        answer = self.call("POST", f"/{self.results}/_search", {"query": {"term": {"queryId": query_id}}})
        hits = answer.get("hits", {}).get("hits", [])
        return hits[0]["_source"] if hits else None
