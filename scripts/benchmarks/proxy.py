"""A server that hands every request on to OpenSearch and counts it."""

import http.client
import http.server
import threading
import urllib.parse


class Counting:
    """`requests` is a list of (method, path) of what went through since it was last cleared."""

    def __init__(self, url):
        self.requests = []
        self.target = urllib.parse.urlsplit(url)
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True

            def handle_one(self):
                outer.requests.append((self.command, self.path.split("?")[0]))
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                headers = {k: v for k, v in self.headers.items() if k.lower() not in ("host", "connection", "accept-encoding")}
                upstream = http.client.HTTPConnection(outer.target.hostname, outer.target.port, timeout=60)
                upstream.request(self.command, self.path, body, headers)
                answer = upstream.getresponse()
                text = answer.read()
                upstream.close()
                self.send_response(answer.status)
                for name, value in answer.getheaders():
                    if name.lower() not in ("content-length", "transfer-encoding", "connection"):
                        self.send_header(name, value)
                if self.command == "HEAD":
                    self.send_header("Content-Length", answer.headers.get("Content-Length", "0"))
                    self.end_headers()
                    return
                self.send_header("Content-Length", str(len(text)))
                self.end_headers()
                self.wfile.write(text)

            do_GET = do_PUT = do_POST = do_DELETE = do_HEAD = handle_one

            def log_message(self, *_):
                """Quiet."""

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def close(self):
        self.server.shutdown()
        self.server.server_close()
