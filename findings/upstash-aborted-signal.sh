#!/usr/bin/env bash
# Where:  npm @upstash/redis 1.39.0, Node 20.
# Guess:  a command of a client whose `signal` has aborted rejects, as fetch does, whatever the signal's reason is.
# Seen:   without automatic pipelining it resolves: the reason of the signal is the reply. A SET of which nothing was sent replies "OK" where that is the reason,
#         and null for a plain abort(). With a function that returns the same signal it rejects.
set -euo pipefail
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT
cd "$dir"; echo '{"private":true}' > package.json; npm install --silent --no-audit --no-fund @upstash/redis@1.39.0
cat > program.mjs <<'PROGRAM'
import { Redis } from '@upstash/redis';
// Nobody listens there.
const at = { url: 'http://127.0.0.1:9', token: 'token', retry: false, enableTelemetry: false, enableAutoPipelining: false };
const signals = [AbortSignal.abort('OK'), AbortSignal.abort(), () => AbortSignal.abort('OK')];
for (const signal of signals) {
  const reply = new Redis({ ...at, signal }).set('key', 'value');
  console.log(await reply.then((value) => `replied ${JSON.stringify(value)}`, () => 'rejected'));
}
PROGRAM
seen=$(node program.mjs | paste -sd ';')
echo "$seen"
[ "$seen" = 'replied "OK";replied null;rejected' ]
