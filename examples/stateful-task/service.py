"""Orders in a SQLite file that follows the node id. Python's standard library is all it needs."""

import json
import os
import signal
import sqlite3
import sys
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

NODE_ID = int(os.environ["NODE_ID"])
NODE_ID_VERSION = int(os.environ["NODE_ID_VERSION"])

# The directory is this tenure's alone, and has what the tenure before has left, a journal of an unfinished transaction included.
database = sqlite3.connect(os.path.join(os.environ["NODE_DATA_DIR"], "orders.db"))
database.execute("PRAGMA journal_mode = DELETE")  # write-ahead logs need shared memory, which a network file system has not
database.execute("PRAGMA synchronous = FULL")
database.execute("CREATE TABLE IF NOT EXISTS orders (id INTEGER PRIMARY KEY, item TEXT, version INTEGER)")
database.commit()


class Handler(BaseHTTPRequestHandler):
    timeout = 5  # seconds, for a client that sends nothing: requests are served one by one

    def do_POST(self):
        item = self.rfile.read(int(self.headers["content-length"])).decode()
        # On the disk when the answer is sent.
        with database:
            row = database.execute("INSERT INTO orders (item, version) VALUES (?, ?)", (item, NODE_ID_VERSION))
        self.answer(201, {"id": row.lastrowid})

    def do_GET(self):
        rows = database.execute("SELECT id, item, version FROM orders ORDER BY id").fetchall()
        self.answer(200, {"node": NODE_ID, "version": NODE_ID_VERSION, "orders": rows})

    def answer(self, status, facts):
        body = json.dumps(facts).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


server = HTTPServer((os.environ.get("HOST", "127.0.0.1"), int(os.environ.get("PORT", "0"))), Handler)


def stop(*_):
    # shutdown() waits for serve_forever() to return, which this very thread is in.
    threading.Thread(target=server.shutdown).start()


signal.signal(signal.SIGTERM, stop)
signal.signal(signal.SIGINT, stop)
(count,) = database.execute("SELECT count(*) FROM orders").fetchone()
print(f"node {NODE_ID}, version {NODE_ID_VERSION}, {count} orders, listens on port {server.server_port}", flush=True)
server.serve_forever()
server.server_close()
database.close()
print("ended", flush=True)
sys.exit(0)
