import { execFile } from 'node:child_process';
import { getEventListeners } from 'node:events';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, it } from '@jest/globals';
import { InMemoryLockRegistry } from '../../lib/testing';
import { ROOT } from '../readme/pages';

const run = promisify(execFile);

it('The signal of a lease of many keys causes no warning of Node about too many listeners', async () => {
  // In a process of its own: Node warns outside of the sandbox of a test.
  const program = `
    const { InMemoryLockRegistry } = require('${join(ROOT, 'lib/testing')}');
    const keys = Array.from({ length: 200 }, (_, i) => 'key ' + i);
    new InMemoryLockRegistry().multi(keys).run(({ signal }) => console.log(signal.aborted));`;
  const args = ['-r', require.resolve('esbuild-register'), '-e', program];
  expect(await run(process.execPath, args, { cwd: ROOT })).toEqual({ stdout: 'false\n', stderr: '' });
});

it('The signal of a lease of several keys listens to each of its locks, until it is unlocked (P8)', async () => {
  const registry = new InMemoryLockRegistry();
  const multi = registry.multi(['a', 'b']);
  const listeners = (ofA: AbortSignal) => getEventListeners(ofA, 'abort').length;
  let ofA: AbortSignal | undefined;
  const lost = multi.run(async ({ signal }) => {
    await registry.run('a', (lease) => {
      ofA = lease.signal;
    });
    // One that enters again inside it has a signal of its own, on the same locks.
    await multi.run((nested) => expect([nested.signal.aborted, listeners(ofA as AbortSignal)]).toEqual([false, 1 + 1]));
    expect([signal.aborted, listeners(ofA as AbortSignal)]).toEqual([false, 1]);
    registry.locks.expire('b');
    await registry.run('b', (lease) => lease.renew());
  });
  await expect(lost).rejects.toMatchObject({ key: 'b', reason: 'expired' });
  expect(listeners(ofA as AbortSignal)).toBe(0);
});
