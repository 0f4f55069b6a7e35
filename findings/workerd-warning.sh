#!/usr/bin/env bash
# Where:  npm workerd 1.20261117.1, nodejs_compat. Linux x64.
# Guess:  process.emitWarning() is seen somewhere if nobody listens, as in Node, Bun and Deno, which print it to stderr.
# Seen:   it is there, and a listener of 'warning' gets it; but nothing is printed, while console.warn() is. A library that warns in the
#         way of Node, of a lost lock for example, is silent there.
set -euo pipefail
dir=$(mktemp -d); trap 'kill $(jobs -p) 2>/dev/null || true; rm -rf "$dir"' EXIT
cd "$dir"; echo '{"private":true}' > package.json; npm install --silent --no-audit --no-fund --ignore-scripts workerd@1.20261117.1
cat > worker.js <<'PROGRAM'
export default { async fetch() {
  console.warn('by console.warn');
  process.emitWarning('by emitWarning', { code: 'LOST' });
  await new Promise((done) => setTimeout(done, 200));
  const heard = new Promise((done) => process.once('warning', ({ code }) => done(code)));
  process.emitWarning('to a listener', { code: 'HEARD' });
  return new Response(await heard);
} };
PROGRAM
cat > config.capnp <<'PROGRAM'
using Workerd = import "/workerd/workerd.capnp";
const config :Workerd.Config = (
  services = [(name = "main", worker = .worker)],
  sockets = [(name = "http", address = "127.0.0.1:16398", http = (), service = "main")]
);
const worker :Workerd.Worker = (
  modules = [(name = "worker", esModule = embed "worker.js")],
  compatibilityDate = "2026-04-01", compatibilityFlags = ["nodejs_compat"]
);
PROGRAM
./node_modules/@cloudflare/workerd-linux-64/bin/workerd serve config.capnp > log 2>&1 &
heard=$(node -e "(async () => { for (let i = 0; i < 100; i++) { try { return console.log(await (await fetch('http://127.0.0.1:16398')).text()); } catch { await new Promise((done) => setTimeout(done, 100)); } } })()")
sleep 0.5
echo "a listener got: $heard; printed: $(grep -oE 'by (console.warn|emitWarning)' log | tr '\n' ' ')"
[ "$heard" = HEARD ] && grep -q 'by console.warn' log && ! grep -q 'by emitWarning' log
