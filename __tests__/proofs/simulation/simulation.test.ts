import { describe, expect, it } from '@jest/globals';
import { allScripts } from '../../../support/all-scripts';
import { LOCK_TYPES } from '../../../support/simulation/plan';
import { bundleLibrary, libraryLoader } from '../../../support/simulation/process/library';
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

  it('knows each script by its name, and so what unlocks by force', async () => {
    const { scripts } = libraryLoader(await bundleLibrary())();
    const unknown = allScripts().filter(({ source }) => !scripts.has(source));
    expect(unknown.map(({ name }) => name)).toEqual([]);
    for (const type of ['spring', 'fair', 'redisson', 'redisson-fair', 'shared'])
      expect([...scripts.values()]).toContain(`unlock by force (${type})`);
  });

  it('finds a fix that is taken out, and prints what happened', async () => {
    const failing = simulate('--type', 'spin', '--seeds', '500', '--without', 'release-without-check', '--history');
    await expect(failing).rejects.toMatchObject({
      code: 1,
      stdout: expect.stringMatching(/server .*acquire[\s\S]*!!!/),
    });
  });
});
