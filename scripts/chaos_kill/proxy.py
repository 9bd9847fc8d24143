"""A TCP proxy between one runner and its store, which delays, cuts connections and loses answers when told to."""

import asyncio
import threading
import time


class Proxy:
    """Listens on a free port of 127.0.0.1. `target` is (host, port), and may change."""

    def __init__(self, target):
        self.target, self.delay, self.cut_until, self.answers_to_lose, self.lost = target, 0.0, 0.0, 0, 0
        self.closed, self.open, self.loop = False, set(), asyncio.new_event_loop()
        listening = threading.Event()

        async def listen():
            self.server = await asyncio.start_server(self.serve, "127.0.0.1", 0)
            self.port = self.server.sockets[0].getsockname()[1]
            listening.set()

        def run():
            asyncio.set_event_loop(self.loop)
            self.loop.run_until_complete(listen())
            self.loop.run_forever()

        threading.Thread(target=run, daemon=True).start()
        listening.wait()
        self.url = f"http://127.0.0.1:{self.port}"

    def lose_answers(self, number):
        """The next answers don't arrive, though what they answer was done."""
        self.answers_to_lose += number

    def cut(self, seconds):
        """All connections break, and no new one is made for so long."""
        self.cut_until = time.monotonic() + seconds
        self.loop.call_soon_threadsafe(lambda: [w.transport.abort() for w in list(self.open)])

    def slow(self, delay):
        """Everything arrives so many seconds later."""
        self.delay = delay

    def close(self):
        async def end():
            self.server.close()
            self.loop.set_exception_handler(lambda *_: None)  # of those that are cancelled here
            tasks = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            self.loop.stop()

        if not self.closed:
            self.closed = True
            asyncio.run_coroutine_threadsafe(end(), self.loop)

    async def serve(self, reader, writer):
        if time.monotonic() < self.cut_until:
            return writer.transport.abort()
        try:
            far_reader, far_writer = await asyncio.open_connection(*self.target)
        except OSError:
            return writer.transport.abort()
        ends = (writer, far_writer)
        self.open.update(ends)
        ways = [asyncio.ensure_future(self.pump(reader, far_writer, False)), asyncio.ensure_future(self.pump(far_reader, writer, True))]
        await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        self.open.difference_update(ends)
        for end in ends:
            end.transport.abort()
        await asyncio.gather(*ways, return_exceptions=True)

    async def pump(self, reader, writer, answers):
        while True:
            data = await reader.read(1 << 16)
            if not data:
                raise ConnectionResetError
            if answers and self.answers_to_lose > 0:
                self.answers_to_lose -= 1
                self.lost += 1
                raise ConnectionResetError
            if self.delay:
                await asyncio.sleep(self.delay)
            writer.write(data)
            await writer.drain()
