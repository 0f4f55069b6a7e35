import { expect, it } from '@jest/globals';
import { Oracle } from '../support/oracle';
import { describePrivate } from '../support/private-redis';
import { RedisFixture } from './redis-fixture';

describePrivate.each(['spin', 'pub-sub'] as const)('A %s lock on a server without UNLINK', (lockType) => {
  const fixture = RedisFixture.install('--rename-command', 'UNLINK', '');

  it('is handed over, released at the end of a time slice, and released', async () => {
    const processes = await Promise.all(
      [1, 2].map(() => fixture.process({ lockType, idleBetweenTries: 10, handOver: 5 })),
    );
    const oracle = new Oracle(fixture.admin);
    const acquisitions = new Map<number, number>();
    await Promise.all(
      processes.flatMap(({ registry }, process) =>
        Array.from({ length: 3 }, async () => {
          for (let round = 0; round < 10; round++) {
            await registry.run('key', () => oracle.section(() => undefined));
            acquisitions.set(process, (acquisitions.get(process) ?? 0) + 1);
          }
        }),
      ),
    );
    expect([...acquisitions.values()]).toEqual([30, 30]);
    expect(oracle.violations).toEqual([]);
    expect(await fixture.isHeld('key')).toBe(false);
    expect(await fixture.calls('del')).toBeGreaterThan(0);
    for (const { warnings } of processes) expect(warnings).toEqual([]);
  });
});
