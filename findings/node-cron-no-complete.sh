#!/usr/bin/env bash
# Where:  node-cron 4.6.0, Node 20.
# Guess:  a coordinator that has answered `shouldRun` with true hears `onComplete` of that run, at the latest when the task is stopped.
# Seen:   a run that waits for its random delay when the task is stopped, or cron shut down, is dropped, and `onComplete` is never
#         called: what the coordinator took for the run, it keeps. A lock that is renewed meanwhile is renewed for ever.
set -euo pipefail
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT
cd "$dir"; echo '{"private":true}' > package.json; npm install --silent --no-audit --no-fund node-cron@4.6.0
cat > program.mjs <<'PROGRAM'
import { once, EventEmitter } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import cron from 'node-cron';
const events = new EventEmitter();
const said = [];
cron.setRunCoordinator({
  async shouldRun() {
    said.push('shouldRun');
    events.emit('asked');
    return true;
  },
  async onComplete() {
    said.push('onComplete');
  },
});
const run = async (options) => {
  const asked = once(events, 'asked');
  const task = cron.schedule('* * * * * *', () => said.push('ran'), { name: 'job', distributed: true, ...options });
  await asked;
  await sleep(300);
  await task.stop();
  await sleep(700);
  await task.destroy();
  return said.splice(0).slice(0, 3).join(' ');
};
const usual = await run({});
// One random delay in 200 is over before it is stopped.
const delayed = await run({ maxRandomDelay: 60_000 });
console.log(`${usual}; ${delayed}`);
process.exit(0);
PROGRAM
seen=$(node program.mjs)
echo "$seen"
[ "$seen" = 'shouldRun ran onComplete; shouldRun' ]
