import { execFile } from 'node:child_process';
import path from 'node:path';
import { promisify } from 'node:util';
import { describe, expect, it, jest } from '@jest/globals';
import { LOCK_TYPES } from '../../support/simulation/plan';

const run = promisify(execFile);
const ROOT = path.resolve(__dirname, '../..');

/** ms; half a minute of the processor's time, on a machine that has a tenth of it to give. */
const LIMIT = 600_000;
jest.setTimeout(LIMIT);

/** In a process of its own: the simulation ends turns of the event loop by itself, and Jest has a context of its own. */
async function simulate(...args: string[]): Promise<string> {
  const command = ['-r', 'esbuild-register', 'scripts/simulate.ts', ...args];
  const { stdout } = await run(process.execPath, command, { cwd: ROOT, maxBuffer: 1e8, timeout: LIMIT });
  return stdout;
}

describe('The simulation', () => {
  it('finds no violation in the first 50 seeds of each type, in which every change of state is made that may be made', async () => {
    const summary = await simulate('--seeds', '50', '--states');
    for (const type of LOCK_TYPES) expect(summary).toContain(type);
    expect(summary).toMatch(/hold +│ asked +│ held +│ \d+/);
    expect(summary).not.toContain('never');
  });

  it('repeats a seed exactly', async () => {
    const types = ['fair', 'pub-sub', 'redisson-fair', 'read-write'].flatMap((type) => ['--type', type]);
    const seeds = [...types, '--from', '400', '--seeds', '6', '--digest'];
    const [first, second] = await Promise.all([simulate(...seeds), simulate(...seeds)]);
    expect(first).toMatch(/[0-9a-f]{40}/);
    expect(second).toBe(first);
  });

  it('finds a fix that is taken out, and prints what happened', async () => {
    const failing = simulate('--type', 'spin', '--seeds', '500', '--without', 'release-without-check', '--history');
    await expect(failing).rejects.toMatchObject({
      code: 1,
      stdout: expect.stringMatching(/server .*acquire[\s\S]*!!!/),
    });
  });
});
