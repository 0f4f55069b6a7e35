import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, it } from '@jest/globals';
import { PrivateRedis } from '../../support/private-redis';
import { describeSince } from '../../support/since';

// It words its errors as servers do since 7.
describeSince('7.0')("The simulation's server", () => {
  const redis = PrivateRedis.install();

  // In a process of its own: its Lua cannot be loaded in the sandbox of Jest.
  it('answers commands and runs scripts as Redis does', async () => {
    const program = [
      require.resolve('esbuild-register'),
      join(__dirname, '../../../support/simulation/server-fidelity.ts'),
    ];
    const args = ['-r', ...program, JSON.stringify({ socket: redis.address })];
    const { stdout } = await promisify(execFile)(process.execPath, args);
    expect(stdout).toMatch(/^\d+ commands and \d+ scripts were compared\n$/);
  });
});
