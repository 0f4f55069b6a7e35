import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { describe, expect, it } from '@jest/globals';

const SIMULATE = join(__dirname, '../../../scripts/simulate.ts');

/** ms */
const LIMIT = 170_000;

function trace(...args: string[]): { readonly status: number | null; readonly stdout: string } {
  const command = ['-r', require.resolve('esbuild-register'), SIMULATE, '--trace', ...args];
  const { status, stdout, stderr } = spawnSync(process.execPath, command, { encoding: 'utf8', timeout: LIMIT });
  return { status, stdout: `${stdout}${stderr}` };
}

const hasTlc = ['java', 'mvn'].every((name) => spawnSync(name, ['-version']).status === 0);

(hasTlc ? describe : describe.skip)('What happens in the simulation', () => {
  it('is a behaviour of the specification', () => {
    const { status, stdout } = trace('--type', 'pub-sub', '--type', 'fair', '--type', 'semaphore', '--seeds', '4');
    expect(stdout.match(/the specification allows all of them/g)).toHaveLength(3);
    expect(status).toBe(0);
  });

  it('is none with a library whose releases delete the key of the next holder', () => {
    const { status, stdout } = trace('--type', 'spin', '--seeds', '40', '--without', 'release-without-check');
    expect(stdout).toContain('the specification does not allow the last event');
    expect(status).toBe(1);
  });

  it('is none with a library that counts the lease of a reader from the answer', () => {
    const { status, stdout } = trace('--type', 'read-write', '--seeds', '8', '--without', 'deadline-from-the-reply');
    expect(stdout).toContain('the specification does not allow the last event');
    expect(status).toBe(1);
  });
});
