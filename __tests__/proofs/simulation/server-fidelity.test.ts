import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, it } from '@jest/globals';
import { describeReal, realRedis } from '../../support/redis';

describeReal("The simulation's server", () => {
  // In a process of its own: its Lua cannot be loaded in the sandbox of Jest.
  it('answers commands and runs scripts as Redis does', async () => {
    const program = [
      require.resolve('esbuild-register'),
      join(__dirname, '../../../support/simulation/server-fidelity.ts'),
    ];
    const args = ['-r', ...program, JSON.stringify(realRedis)];
    const { stdout } = await promisify(execFile)(process.execPath, args);
    expect(stdout).toMatch(/^\d+ commands and \d+ scripts were compared\n$/);
  });
});
