import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import test from 'node:test';

for (const file of ['index.mjs', 'index.cjs']) {
  test(`${file} takes the lock, and ends`, () => {
    const output = execFileSync(process.execPath, [file], { encoding: 'utf8', timeout: 10_000 });
    assert.equal(output, 'has the lock\n');
  });
}
