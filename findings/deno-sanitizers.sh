#!/usr/bin/env bash
# Where:  npm deno 2.9.6.
# Guess:  a test that leaves a timer running, as of a lease that is still renewed, fails: Deno's sanitizers are known for that.
# Seen:   it passes. Since 2.9 the sanitizers of operations and resources are off unless --sanitize-ops and --sanitize-resources
#         are given; then it fails, and names the timer.
set -euo pipefail
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT
cd "$dir"; echo '{"private":true}' > package.json
npm install --silent --no-audit --no-fund --ignore-scripts deno@2.9.6
deno="$dir/node_modules/@deno/linux-x64-glibc/deno"; export NO_COLOR=1
echo "Deno.test('leaves a timer', () => { setInterval(() => 0, 1_000); });" > leak.test.js
default=$("$deno" test leak.test.js 2>&1 | grep -oE '[0-9]+ passed \| [0-9]+ failed' || true)
asked=$("$deno" test --sanitize-ops --sanitize-resources leak.test.js 2>&1 | grep -oE '[0-9]+ passed \| [0-9]+ failed' || true)
echo "by default: $default; with the sanitizers: $asked"
[ "$default/$asked" = '1 passed | 0 failed/0 passed | 1 failed' ]
