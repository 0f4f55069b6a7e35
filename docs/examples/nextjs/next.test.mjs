import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import test from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';

const PORT = process.env.PORT ?? '3123';

test('a double click gets 409', { timeout: 60_000 }, async () => {
  const server = spawn(process.execPath, ['node_modules/next/dist/bin/next', 'start', '--port', PORT], { stdio: 'ignore' });
  try {
    const url = `http://localhost:${PORT}/orders/42`;
    while (!(await fetch(`http://localhost:${PORT}/`).catch(() => undefined))) await sleep(200);
    await fetch(url, { method: 'POST' }); // connects
    const clicks = await Promise.all([fetch(url, { method: 'POST' }), fetch(url, { method: 'POST' })]);
    assert.deepEqual(clicks.map(({ status }) => status).sort(), [200, 409]);
  } finally {
    server.kill();
  }
});
