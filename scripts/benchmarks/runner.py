"""The program under measurement: a `firesteel run`, and the memory of it and its workers."""

import pathlib
import signal
import subprocess
import threading
import time
import uuid

from . import stores


class Runner:
    """A runner that serves a session of its own, or all that are like a pattern, from `with` to its end."""

    def __init__(self, program, store, folder, options=(), session=None, wait=True, pattern=None):
        self.program, self.store, self.folder = program, store, pathlib.Path(folder)
        self.session = session or "bench-" + uuid.uuid4().hex
        self.options, self.wait = list(options), wait
        self.serves = ["--sessions", pattern] if pattern else ["--session", self.session]

    def __enter__(self):
        self.log = self.folder / f"{self.session}.log"
        command = [str(self.program), "run", *self.store.options, *self.serves, *self.options]
        self.began = time.perf_counter()
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL)
        if self.wait:
            try:
                self.until(lambda: self.serving(), 60, "the session to be served")
            except BaseException:
                self.__exit__()
                raise
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(30)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()

    def serving(self):
        if isinstance(self.store, stores.Sqlite) and self.store.db is None:
            if not self.store.path.exists() or self.store.path.stat().st_size == 0:
                return False
            self.store.connect()
        try:
            return self.store.states([self.session]).get(self.session) == "running"
        except Exception as error:  # the table is made in a moment
            if "no such table" in str(error) or "locked" in str(error):
                return False
            raise

    def until(self, done, seconds, what, pause=0.0005):
        """Waits; the answer of `done` that ended it."""
        end = time.perf_counter() + seconds
        while not (answer := done()):
            if self.process.poll() is not None:
                raise RuntimeError(f"the runner ended with {self.process.returncode}: {self.log.read_text()[-2000:]}")
            if time.perf_counter() > end:
                raise RuntimeError(f"waited {seconds} s for {what}: {self.log.read_text()[-2000:]}")
            time.sleep(pause)
        return answer

    def submit(self, query):
        document = stores.statement(self.session, query)
        self.store.insert([document])
        return document

    def ended(self, document):
        state = self.store.states([document["statementId"]]).get(document["statementId"])
        return state if state in stores.TERMINAL else None

    def run(self, query, seconds=600, pause=None):
        """One statement; seconds from before its submission until its result was found, and the result. It is looked for each `pause` seconds."""
        began = time.perf_counter()
        document = self.submit(query)
        result = self.until(lambda: self.store.result(document["queryId"]), seconds, f"the result of {query[:60]}", pause or self.store.PAUSE)
        took = time.perf_counter() - began
        if result["status"] != "SUCCESS":
            raise RuntimeError(f"{query[:200]}: {result['error']}")
        return took, result

    def workers(self):
        return children(self.process.pid)

    def memory(self):
        """Resident bytes: the runner's, each worker's."""
        return resident(self.process.pid), [resident(p) for p in self.workers()]


def resident(pid):
    try:
        for line in open(f"/proc/{pid}/status", encoding="utf-8"):
            if line.startswith("VmRSS:"):
                return int(line.split()[1]) * 1024
    except OSError:
        pass
    return 0


def children(pid):
    found = []
    for task in pathlib.Path(f"/proc/{pid}/task").glob("*/children"):
        try:
            found += [int(p) for p in task.read_text().split()]
        except OSError:
            pass
    return [p for c in found for p in [c, *children(c)]]


class Peak(threading.Thread):
    """The largest sum of resident memory of a runner and its workers, looked at every 20 ms."""

    def __init__(self, runner):
        super().__init__(daemon=True)
        self.runner, self.bytes, self.stop = runner, 0, threading.Event()

    def run(self):
        while not self.stop.wait(0.02):
            own, workers = self.runner.memory()
            self.bytes = max(self.bytes, own + sum(workers))

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.stop.set()
        self.join()
