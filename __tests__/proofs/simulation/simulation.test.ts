import { describe, expect, it } from '@jest/globals';
import { LOCK_TYPES } from '../../../support/simulation/plan';
import { simulate } from './simulate';

describe('The simulation', () => {
  it('finds no violation in the first 8 seeds of each type', async () => {
    const summary = await simulate('--seeds', '8');
    for (const type of LOCK_TYPES) expect(summary).toContain(type);
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
