#!/usr/bin/env bash
# Where:  npm ioredis 6.0.0, which asks for RESP 3 by default, Node 20 or later; a server on loopback that answers HELLO with
#         NOPROTO, as servers and fakes of RESP 2 do, and everything else with OK.
# Guess:  the refusal is reported: an `error` event, and no connection, since the client was told to speak RESP 3.
# Seen:   the client is `ready` within milliseconds, without an event, and speaks RESP 2. Nothing says so; but a connection of
#         RESP 2 that has subscribed takes no other commands any more.
set -euo pipefail
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT
cd "$dir"; echo '{"private":true}' > package.json; npm install --silent --no-audit --no-fund ioredis@6.0.0
cat > program.cjs <<'PROGRAM'
const { createServer } = require('node:net'), { Redis } = require('ioredis');
const asked = [];
const server = createServer((socket) => {
  socket.on('error', () => 0);
  socket.on('data', (data) => {
    for (const [, words] of String(data).matchAll(/\*\d+\r\n((?:\$\d+\r\n[^\r]*\r\n)+)/g)) {
      const isHello = /^\$5\r\nhello/i.test(words);
      if (isHello) asked.push(words.split('\r\n')[3]);
      socket.write(isHello ? '-NOPROTO Resp3 not supported\r\n' : '+OK\r\n');
    }
  });
}).listen(0, '127.0.0.1', async () => {
  let errors = 0;
  const redis = new Redis({ port: server.address().port, enableReadyCheck: false }).on('error', () => errors++);
  await new Promise((done) => setTimeout(done, 1_000));
  console.log(`it asked for RESP ${asked}, was refused, and is "${redis.status}" with ${errors} errors; PING gives ${await redis.ping()}`);
  process.exit(asked[0] === '3' && redis.status === 'ready' && errors === 0 ? 0 : 1);
});
PROGRAM
node program.cjs
