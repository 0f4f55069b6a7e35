"""redis-py's Lock for `npm run torture`; torture/peers.ts describes the lines. Arguments: host, port, ttl and wait in ms."""

import sys
from concurrent.futures import ThreadPoolExecutor

import redis

host, port, ttl, wait = sys.argv[1], *map(int, sys.argv[2:5])
client = redis.Redis(host=host, port=port, socket_timeout=1, socket_connect_timeout=1)
locks = {}


def answer(do, call, key):
    if do == "lock":
        lock = client.lock(key, timeout=ttl / 1000, blocking_timeout=wait / 1000, thread_local=False)
        if not lock.acquire():
            return "no"
        locks[call] = lock
        return "yes"
    if do == "state":
        return "yes" if locks[call].owned() else "no"
    locks.pop(call).release()
    return "yes"


def execute(do, call, key=None):
    try:
        text = answer(do, call, key)
    except Exception as error:
        text = "failed " + " ".join(repr(error).split())
    sys.stdout.write(f"{do} {call} {text}\n")
    sys.stdout.flush()


print("ready", flush=True)
with ThreadPoolExecutor(64) as threads:
    for line in sys.stdin:
        threads.submit(execute, *line.split())
