"""A Python service that uses kazoo's locks and takes its commands from a test, in RecipePeer.java's manner.

Arguments: CONNECT SESSION_TIMEOUT_MS. What has the same id is done in order by one thread, the rest at once. Ends with its input.
"""

import json
import queue
import sys
import threading
import time
import uuid
from functools import partial

from kazoo.client import KazooClient
from kazoo.exceptions import LockTimeout
from kazoo.recipe.lock import Lock, ReadLock, Semaphore, WriteLock

STUCK_S = 60
OUT = threading.Lock()


class CuratorLock(Lock):
    """kazoo's lock under the names of Curator's InterProcessMutex: two attributes, nothing else."""

    _NODE_NAME = "-lock-"
    _EXCLUDE_NAMES = ["-lock-"]


class CuratorReadLock(ReadLock):
    """The same for InterProcessReadWriteLock."""

    _NODE_NAME = "__READ__"
    _EXCLUDE_NAMES = ["__WRIT__"]


class CuratorWriteLock(WriteLock):
    _NODE_NAME = "__WRIT__"
    _EXCLUDE_NAMES = ["__READ__", "__WRIT__"]


class CuratorSemaphore(Semaphore):
    """kazoo's semaphore with its leases and its lock where InterProcessSemaphoreV2 has them."""

    def __init__(self, client, path, max_leases):
        client.Lock = partial(CuratorLock, client)
        super().__init__(client, path + "/leases", max_leases=max_leases)
        self.lock_path = path + "/locks"
        # Without a number from the servers: there is no order among leases.
        self.create_path = "%s/leases/_c_%s-lease-0000000000" % (path, uuid.uuid4())


def recipe_of(client, kind, path, count):
    if kind == "lock":
        return CuratorLock(client, path)
    if kind == "lock-extra":
        return Lock(client, path, extra_lock_patterns=["-lock-"])
    if kind == "read":
        return CuratorReadLock(client, path)
    if kind == "write":
        return CuratorWriteLock(client, path)
    if kind == "semaphore":
        return CuratorSemaphore(client, path, count)
    raise ValueError(kind)


def path_of(recipe):
    return recipe.create_path if isinstance(recipe, Semaphore) else recipe.path + "/" + recipe.node


class Peer:
    def __init__(self, connect, session_timeout_ms):
        self.connect = connect
        self.session_timeout_s = session_timeout_ms / 1000
        self.client = self.new_client()
        self.recipes = {}
        self.threads = {}

    def new_client(self):
        client = KazooClient(hosts=self.connect, timeout=self.session_timeout_s)
        client.start()
        return client

    def serve(self):
        for line in sys.stdin:
            command = json.loads(line)
            name = command.get("id", "call %d" % command["call"])
            if name not in self.threads:
                self.threads[name] = queue.Queue()
                threading.Thread(target=self.work, args=(self.threads[name],), daemon=True).start()
            self.threads[name].put(command)
        self.client.stop()

    def work(self, commands):
        while True:
            command = commands.get()
            try:
                answer = {"call": command["call"], "result": self.carry_out(command)}
            except Exception as error:  # reported to the test, whatever it is
                answer = {"call": command["call"], "error": type(error).__name__}
            write(answer)

    def carry_out(self, command):
        what = command["do"]
        if what == "session":
            return "%016x" % (self.client.client_id[0] & 0xFFFFFFFFFFFFFFFF)
        if what == "acquire":
            return self.acquire(command)
        if what == "release":
            return self.recipes.pop(command["id"]).release() and None
        if what == "contend":
            return self.contend(command)
        raise ValueError(what)

    def acquire(self, command):
        recipe = recipe_of(self.client, command["kind"], command["path"], command.get("count", 0))
        timeout_s = command["timeoutMs"] / 1000
        try:
            had = recipe.acquire(timeout=timeout_s) if timeout_s > 0 else recipe.acquire(blocking=False)
        except LockTimeout:
            had = False
        if not had:
            return None
        self.recipes[command["id"]] = recipe
        path = path_of(recipe)
        return {"path": path, "token": str(self.client.exists(path).czxid)}

    def contend(self, command):
        """Contenders with a session each acquire and release for a time; see Contention.java."""
        entries, threads = [], []
        end = time.monotonic() + command["timeoutMs"] / 1000
        for i in range(command["count"]):
            kind = command["kinds"][i % len(command["kinds"])]
            own = "%s/kazoo-%d" % (command["witness"], i)
            entry = {"contender": own, "kind": kind, "tenures": []}
            entries.append(entry)
            threads.append(threading.Thread(target=self.turns, args=(command["path"], entry, end), daemon=True))
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for entry in entries:
            if "error" in entry:
                raise RuntimeError(entry["error"])
        return entries

    def turns(self, path, entry, end):
        client = self.new_client()
        try:
            client.create(entry["contender"], makepath=True)
            while time.monotonic() < end:
                recipe = recipe_of(client, entry["kind"], path, 0)
                recipe.acquire(timeout=STUCK_S)
                entered = client.set(entry["contender"], b"")
                token = client.exists(path_of(recipe)).czxid
                left = client.set(entry["contender"], b"")
                recipe.release()
                entry["tenures"].append({"token": str(token), "from": str(entered.mzxid), "to": str(left.mzxid)})
        except Exception as error:  # raised by the thread that waits for this one
            entry["error"] = repr(error)
        finally:
            client.stop()


def write(line):
    with OUT:
        print(json.dumps(line), flush=True)


if __name__ == "__main__":
    peer = Peer(sys.argv[1], int(sys.argv[2]))
    write({"event": "ready"})
    peer.serve()
