"""An HTTP service that is given a node id by `nodelease run`. Python's standard library is all it needs."""

import json
import os
import signal
import sys
import threading
import time
import urllib.error
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

NODE_ID = int(os.environ["NODE_ID"])
NODE_ID_VERSION = int(os.environ["NODE_ID_VERSION"])
NODELEASE_URL = os.environ["NODELEASE_URL"]


class Lease:
    """Whether the node id is still ours, asked of nodelease when what it said last has run out, at most once a second."""

    def __init__(self):
        self._valid_until = 0.0
        self._lock = threading.Lock()

    def is_valid(self):
        with self._lock:
            # Taken before the question is sent: however long the answer takes, it is never believed for too long.
            asked = time.monotonic()
            if asked < self._valid_until:
                return True
            try:
                with urllib.request.urlopen(f"{NODELEASE_URL}/lease", timeout=1) as answer:
                    valid_for_ms = json.load(answer)["validForMs"]
            except (OSError, ValueError):  # no connection, no answer in time, or a status other than 200
                return False
            # A fixed node id, as of a StatefulSet, is valid without an end: null.
            valid_for = float("inf") if valid_for_ms is None else valid_for_ms / 1000
            self._valid_until = asked + min(valid_for, 1.0)
            return time.monotonic() < asked + valid_for


lease = Lease()


class Handler(BaseHTTPRequestHandler):
    timeout = 5  # seconds, for a client that sends nothing: the end waits for all of them

    def do_GET(self):
        if lease.is_valid():
            self.answer(200, {"node": NODE_ID, "version": NODE_ID_VERSION})
        else:
            self.answer(503, {"error": "this node has lost its id"})

    def answer(self, status, facts):
        body = json.dumps(facts).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


server = ThreadingHTTPServer((os.environ.get("HOST", "127.0.0.1"), int(os.environ.get("PORT", "0"))), Handler)
server.daemon_threads = False  # requests under way are answered before the end


def stop(*_):
    # shutdown() waits for serve_forever() to return, which this very thread is in.
    threading.Thread(target=server.shutdown).start()


signal.signal(signal.SIGTERM, stop)
signal.signal(signal.SIGINT, stop)
print(f"node {NODE_ID}, version {NODE_ID_VERSION}, listens on port {server.server_port}", flush=True)
server.serve_forever()
server.server_close()
print("ended", flush=True)
sys.exit(0)
