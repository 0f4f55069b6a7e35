import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { expect, it } from '@jest/globals';
import { machineDelay } from '../support/machine-delay';
import { describePrivate, PrivateRedis } from '../support/private-redis';
import { until } from '../support/until';

describePrivate('a process has nothing left to do while it holds leases', () => {
  it('P8: it ends by itself after its client was destroyed, and its keys expire', async () => {
    const redis = await PrivateRedis.start();
    const admin = await redis.connect();
    const child = spawn(
      process.execPath,
      ['-r', require.resolve('esbuild-register'), join(__dirname, 'holder-process.ts'), JSON.stringify(redis.address)],
      { stdio: ['ignore', 'pipe', 'inherit'] },
    );
    const exited = once(child, 'exit');
    const [taken] = (await once(child.stdout, 'data')) as [Buffer];
    expect(taken.toString()).toBe('destroyed\n');
    const startedAt = performance.now();
    const exit = await Promise.race([exited, until(() => false, { within: 3_000 }).catch(() => 'still running')]);
    if (exit === 'still running') child.kill('SIGKILL');
    // Every timer that is left, of renewals and of deadlines, is due in seconds.
    expect(exit).toEqual([0, null]);
    expect(performance.now() - startedAt).toBeLessThan(3_000 + machineDelay());
    expect(await admin.dbSize()).toBeGreaterThan(0);
  });
});
