"""A store, the sessions in it, and the processes that serve them."""

import http.client
import json
import os
import pathlib
import re
import signal
import subprocess
import time
import urllib.parse

from benchmarks import stores
from benchmarks.runner import children

from .proxy import Proxy

COLLECTIONS = ("requests", "results", "state")
LEASE = 1.0


class Sqlite(stores.Sqlite):
    """A file; nothing is between it and the runners."""

    target = None

    def __init__(self, path):
        super().__init__(path, "normal")

    def options_through(self, _):
        return self.options

    def ready(self):
        if self.db is None and self.path.exists() and self.path.stat().st_size > 0:
            self.connect()
        try:
            return self.db is not None and self.db.execute("SELECT count(*) FROM documents") is not None
        except Exception as error:  # the tables are made in a moment
            if "no such table" in str(error) or "locked" in str(error):
                return False
            raise

    def documents(self, collection):
        found = self.db.execute("SELECT id, json FROM documents WHERE collection = ?", (COLLECTIONS.index(collection),))
        return {key: json.loads(text) for key, text in found}


class OpenSearch(stores.OpenSearch):
    """Indices of a server that may be restarted meanwhile, so each request is tried until it is answered."""

    def __init__(self, url, suffix):
        super().__init__(url, suffix)
        self.state = f"bench_state_{suffix}"
        self.options += ["--state-index", self.state]
        self.move(url)

    def move(self, url):
        self.url, self.parts = url, urllib.parse.urlsplit(url)
        self.target = (self.parts.hostname, self.parts.port)
        self.connection = http.client.HTTPConnection(*self.target, timeout=60)

    def options_through(self, url):
        return ["--store", url, *self.options[2:]]

    def call(self, *request, **how):
        end = time.monotonic() + 120
        while True:
            try:
                return super().call(*request, **how)
            except (OSError, http.client.HTTPException, RuntimeError) as error:
                if time.monotonic() > end or (isinstance(error, RuntimeError) and not re.search(r": (429|503) ", str(error))):
                    raise
                self.connection.close()
                time.sleep(0.1)
                self.move(self.url)

    def insert(self, documents):
        try:
            super().insert(documents)
        except AssertionError as refused:  # an earlier try did it, and its answer was lost
            if any(item["create"]["status"] not in (201, 409) for item in refused.args[0]["items"]):
                raise

    def ready(self):
        return "error" not in self.call("GET", f"/{self.requests},{self.results},{self.state}")

    def cancel(self, key):
        for _ in range(20):
            if self.states([key])[key] in stores.TERMINAL:
                return
            try:
                return super().cancel(key)
            except RuntimeError as error:
                if ": 409 " not in str(error):
                    raise

    def documents(self, collection):
        index, found, after = getattr(self, collection), {}, None
        self.call("POST", f"/{index}/_refresh")
        opened = self.call("POST", f"/{index}/_search?scroll=1m", {"size": 500, "query": {"match_all": {}}})
        while opened["hits"]["hits"]:
            found.update({hit["_id"]: hit["_source"] for hit in opened["hits"]["hits"]})
            opened = self.call("POST", "/_search/scroll", {"scroll": "1m", "scroll_id": opened["_scroll_id"]})
        return found

    def remove(self):
        for index in (self.requests, self.results, self.state):
            self.call("DELETE", f"/{index}")


class Process:
    """One `firesteel run`, with a way to the store of its own."""

    def __init__(self, world, session, name):
        self.session, self.name, self.log = session, name, world.folder / f"{name}.log"
        self.proxy = Proxy(world.store.target) if world.store.target else None
        self.frozen_until, self.ended = 0.0, None
        command = [str(world.program), "run", "--standby", *world.store.options_through(self.proxy and self.proxy.url), "--session", session,
                   "--data", str(world.data), "--export", str(world.exports), "--spill-dir", str(world.folder / f"spill-{name}"), *world.options]
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL)

    def text(self):
        return self.log.read_text(errors="replace")

    def alive(self):
        return self.process.poll() is None

    def serving_since(self):
        """When it took the session, as its log tells the time; nothing if it did not."""
        line = next((line for line in self.text().splitlines() if "serving the session" in line), "")
        return line.split(" ")[0]

    def workers(self):
        return children(self.process.pid)

    def signal(self, number):
        try:
            self.process.send_signal(number)
        except ProcessLookupError:
            pass

    def close(self):
        if self.alive():
            self.process.kill()
        self.process.wait()
        if self.proxy:
            self.proxy.close()


class World:
    """The store and its runners. `stand_bys`: how many processes wait beside each owner."""

    def __init__(self, program, data, folder, store, sessions, options, stand_bys):
        self.program, self.data, self.folder, self.store = program, data, pathlib.Path(folder), store
        self.sessions, self.options, self.stand_bys = sessions, options, stand_bys
        self.exports = self.folder / "exports"
        self.exports.mkdir(parents=True)
        self.processes, self.all, self.told = [], [], []

    def start(self, session):
        process = Process(self, session, f"{session}-runner-{len(self.all)}")
        self.processes.append(process)
        self.all.append(process)
        return process

    def open(self):
        for session in self.sessions:
            for _ in range(1 + self.stand_bys):
                self.start(session)
        self.until(lambda: self.store.ready() and all(self.owner(s) for s in self.sessions), 120, "the sessions to be served")

    def until(self, done, seconds, what):
        end = time.monotonic() + seconds
        while not done():
            for process in self.processes:
                if process.process.poll() not in (None, 0, -signal.SIGKILL):
                    raise RuntimeError(f"{process.name} ended with {process.process.returncode}: {process.text()[-1000:]}")
            if time.monotonic() > end:
                raise RuntimeError(f"waited {seconds} s for {what}")
            time.sleep(0.02)

    def of(self, session):
        return [p for p in self.processes if p.session == session and p.alive()]

    def owner(self, session):
        """The one that took the session last, as far as the logs say."""
        return max((p for p in self.of(session) if p.serving_since()), key=Process.serving_since, default=None)

    def replace_the_dead(self):
        """Each that was killed, or left because another had its session, gets a successor. One that failed is told of."""
        for process in [p for p in self.processes if not p.alive()]:
            self.processes.remove(process)
            process.ended = process.process.returncode
            if process.ended not in (0, -signal.SIGKILL):
                self.told.append(f"{process.name} ended with {process.ended}; its log: {process.log}")
            process.close()
            self.start(process.session)

    def close(self):
        """Stand-bys leave first, so that the owners end their sessions."""
        owners = [self.owner(s) for s in self.sessions]
        for group in ([p for p in self.processes if p not in owners], [p for p in owners if p]):
            for process in group:
                process.signal(signal.SIGTERM)
            for process in group:
                try:
                    code = process.process.wait(60)
                    if code != 0:
                        self.told.append(f"{process.name} ended with {code} when it was told to stop; its log: {process.log}")
                except subprocess.TimeoutExpired:
                    self.told.append(f"{process.name} did not stop within 60 s; its log: {process.log}")
        self.kill()

    def kill(self):
        for process in self.processes:
            process.close()

    def count(self, text):
        """How often the logs say it."""
        return sum(p.text().count(text) for p in self.all)

    def move(self, url):
        """The server is elsewhere now."""
        self.store.move(url)
        for process in self.processes:
            process.proxy.target = self.store.target
