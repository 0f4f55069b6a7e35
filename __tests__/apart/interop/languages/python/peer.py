"""
A Python process that executes lock commands with real lock libraries, in the line protocol of java/.../Peer.java. Its
argument is the port of Redis. Each caller is a thread, which executes its commands in order.
"""

import asyncio
import os
import queue
import sys
import threading
import time

import redis
import redis.asyncio

PORT = int(sys.argv[1])


def expiry(ttl):
    """A ttl of 0 ms is a key without expiry."""
    return ttl / 1000 if ttl > 0 else None


def patience(wait):
    """Without a limit the caller waits until it has the lock."""
    return None if wait is None else wait / 1000


class RedisPy:
    """The Lock of redis-py. A lock object is a caller's own: its token is too."""

    client = redis.Redis(host="127.0.0.1", port=PORT)

    def __init__(self, name, ttl):
        self.lock = self.client.lock(name, timeout=expiry(ttl))

    def acquire(self, wait=None):
        return self.lock.acquire(blocking_timeout=patience(wait))

    def release(self):
        self.lock.release()

    def about(self):
        return f"locked() {self.lock.locked()}, owned() {self.lock.owned()}"


class RedisPyBinary(RedisPy):
    """The same with a token that is no text, as other libraries have."""

    def acquire(self, wait=None):
        return self.lock.acquire(blocking_timeout=patience(wait), token=bytes([0xFF, 0xFE, 0x00]) + os.urandom(17))


class RedisPyAsyncio:
    """The Lock of redis.asyncio, in one event loop for all callers."""

    loop = asyncio.new_event_loop()
    client = redis.asyncio.Redis(host="127.0.0.1", port=PORT)

    def __init__(self, name, ttl):
        async def create():
            return self.client.lock(name, timeout=expiry(ttl))

        # Its token is in a variable of the thread that creates it.
        self.lock = self.run(create())

    def run(self, coroutine):
        return asyncio.run_coroutine_threadsafe(coroutine, self.loop).result()

    def acquire(self, wait=None):
        return self.run(self.lock.acquire(blocking_timeout=patience(wait)))

    def release(self):
        self.run(self.lock.release())

    def about(self):
        return f"locked() {self.run(self.lock.locked())}, owned() {self.run(self.lock.owned())}"


LIBRARIES = {
    "redis-py": RedisPy,
    "redis-py-binary": RedisPyBinary,
    "redis-py-asyncio": RedisPyAsyncio,
}

threading.Thread(target=RedisPyAsyncio.loop.run_forever, daemon=True).start()
oracle = redis.Redis(host="127.0.0.1", port=PORT)


def compete(library, name, ttl, callers, work, ms, witness):
    """Callers that take one lock over and over, as compete.ts has them."""
    start = time.monotonic()
    end = start + ms / 1000
    inside = f"{witness}:inside"
    shared = threading.Lock()
    of = {"turns": 0, "longest": 0.0, "violations": 0, "left_at": start}

    def turns():
        while time.monotonic() < end:
            lock = library(name, ttl)
            lock.acquire()
            entered = time.monotonic()
            is_alone = oracle.incr(inside) == 1
            time.sleep(work / 1000)
            was_alone = oracle.decr(inside) == 0
            with shared:
                of["longest"] = max(of["longest"], entered - of["left_at"])
                of["turns"] += entered < end
                of["violations"] += (not is_alone) + (not was_alone)
                of["left_at"] = time.monotonic()
            lock.release()

    threads = [threading.Thread(target=turns) for _ in range(callers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return f"{of['turns']},{round(of['longest'] * 1000)},{of['violations']}"


class Caller:
    """A thread that executes its commands in order."""

    def __init__(self):
        self.commands = queue.Queue()
        self.held = {}
        threading.Thread(target=self.run, daemon=True).start()

    def run(self):
        while True:
            number, *words = self.commands.get()
            try:
                say(f"{number} ok {self.obey(*words)}")
            except Exception as error:
                say(f"{number} error {error!r}".replace("\n", " "))

    def obey(self, kind, _caller, ttl, verb, name, *arguments):
        library, ttl = LIBRARIES[kind], int(ttl)
        if verb in ("lock", "tryLock"):
            lock = library(name, ttl)
            wait = None if verb == "lock" else int(arguments[0]) if arguments else 0
            if not lock.acquire(wait):
                return "false"
            self.held[name] = lock
            return "true"
        if verb == "unlock":
            self.held.pop(name).release()
            return "true"
        if verb == "about":
            return library(name, ttl).about()
        if verb == "compete":
            callers, work, ms, witness = arguments
            return compete(library, name, ttl, int(callers), int(work), int(ms), witness)
        raise ValueError(verb)


saying = threading.Lock()


def say(line):
    with saying:
        print(line, flush=True)


callers = {}
say("ready")
for line in sys.stdin:
    number, kind, caller, *rest = line.split()
    if caller not in callers:
        callers[caller] = Caller()
    callers[caller].commands.put((number, kind, caller, *rest))
os._exit(0)
