#!/usr/bin/env bash
# Where:  npm ioredis 5.11.1 and 6.0.0, Node 20 or later; a server on loopback that refuses the password.
# Guess:  after disconnect() nothing of a client keeps the process alive.
# Seen:   where its socket has been closed already when disconnect() is called, a timer of disconnectTimeout (2 s) keeps it.
set -euo pipefail
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT
for version in 5.11.1 6.0.0; do
  mkdir "$dir/$version"; cd "$dir/$version"; echo '{"private":true}' > package.json; npm install --silent --no-audit --no-fund "ioredis@$version"
  cat > program.cjs <<'PROGRAM'
const { createServer } = require('node:net'), { Redis } = require('ioredis');
const server = createServer((socket) => socket.on('error', () => 0).on('data', () => socket.write('-WRONGPASS invalid username-password pair\r\n')));
server.listen(0, '127.0.0.1', () => {
  const redis = new Redis({ port: server.address().port, password: 'old', retryStrategy: () => 60_000 }).on('error', () => 0);
  setTimeout(() => {
    redis.stream.destroy();
    setTimeout(() => {
      redis.disconnect();
      server.close();
      const at = performance.now();
      process.on('exit', () => {
        const ms = Math.round(performance.now() - at);
        console.log(`${process.argv[2]}: the process ended ${ms} ms after disconnect()`);
        process.exitCode = ms > 1_500 ? 0 : 1;
      });
    }, 200);
  }, 500);
});
PROGRAM
  node program.cjs "ioredis $version"
done
