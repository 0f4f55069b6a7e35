import { expect, it } from '@jest/globals';
import { Oracle } from '../support/oracle';
import { describePrivate } from '../support/private-redis';
import { until } from '../support/until';
import { RedisFixture } from './redis-fixture';

const CYCLES = 5_000;
const CALLERS = 32;
const KEYS = ['one', 'two', 'three', 'four', 'five'];

describePrivate(`After many lock cycles by ${CALLERS} callers on ${KEYS.length} keys`, () => {
  const fixture = RedisFixture.install();

  it.each([
    ['without close', CYCLES],
    ['after close', CYCLES / 10],
  ])(
    'no channel is left (%s; %d cycles)',
    async (when, cycles) => {
      const processes = await Promise.all([fixture.process(), fixture.process()]);
      const oracles = KEYS.map(() => new Oracle(fixture.admin));
      let left = cycles;
      await Promise.all(
        Array.from({ length: CALLERS }, async (_, caller) => {
          const { registry } = processes[caller % processes.length] as (typeof processes)[number];
          while (left > 0) {
            const key = left-- % KEYS.length;
            await registry.run(KEYS[key] as string, () => oracles[key]?.section(() => undefined));
          }
        }),
      );
      expect(oracles.reduce((sum, { entered }) => sum + entered, 0)).toBe(cycles);
      expect(oracles.flatMap(({ violations }) => violations)).toEqual([]);
      expect((await fixture.channels()).length).toBeGreaterThan(0);
      if (when === 'after close') await Promise.all(processes.map(({ registry }) => registry.close()));
      // A channel lingers for a second.
      await until(async () => (await fixture.admin.pubSubChannels()).length === 0, { within: 2_000 });
      for (const key of KEYS) expect(await fixture.isHeld(key)).toBe(false);
      for (const { warnings } of processes) expect(warnings).toEqual([]);
    },
    120_000,
  );
});
