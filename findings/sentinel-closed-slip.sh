#!/usr/bin/env bash
# Where:  npm redis 6.3.1 and 5.12.1 (node-redis), Node 20.
# Guess:  every kind of client that was never connected rejects a command with ClientClosedError, "The client is closed".
# Seen:   a client, a pool, and a cluster of 6.3.1 do. A sentinel of both versions, and a cluster of 5.12.1, reject with a TypeError
#         about a property of undefined, so a caller that retries what may pass retries it.
set -euo pipefail
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT
cd "$dir"; echo '{"private":true}' > package.json
npm install --silent --no-audit --no-fund redis6@npm:redis@6.3.1 redis5@npm:redis@5.12.1
cat > program.mjs <<'PROGRAM'
for (const name of ['redis6', 'redis5']) {
  const redis = await import(name);
  const clients = [
    redis.createClient(),
    redis.createClientPool(),
    redis.createCluster({ rootNodes: [{ socket: { port: 9 } }] }),
    redis.createSentinel({ name: 'main', sentinelRootNodes: [{ host: '127.0.0.1', port: 9 }] }),
  ];
  for (const client of clients) {
    client.on('error', () => undefined);
    const error = await Promise.resolve().then(() => client.get('key')).catch((reason) => reason);
    console.log(error.constructor.name === 'TypeError' ? 'slip' : error.message === 'The client is closed' ? 'closed' : error.message);
  }
}
process.exit();
PROGRAM
seen=$(node program.mjs | paste -sd ' ')
echo "redis 6: client, pool, cluster, sentinel; redis 5: the same: $seen"
[ "$seen" = 'closed closed closed slip closed closed slip slip' ]
