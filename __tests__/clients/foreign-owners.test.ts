import { expect, it } from '@jest/globals';
import type { fromGlide } from '../../lib/clients/valkey-glide';
import { LOCK_TYPES } from '../../lib/kinds';
import { lockContract } from '../contract/lock-contract';
import { LockFixture } from '../contract/lock-fixture';
import { foreignOwners } from '../contract/parts/foreign-owners';
import { redis6Client } from '../support/client-kinds';
import { glideClient } from '../support/glide-kinds';
import { ioredisClient } from '../support/ioredis-kinds';
import { packages } from '../support/ioredis-packages';
import { describeReal } from '../support/redis';
import { until } from '../support/until';
import { upstashClient } from '../support/upstash-kind';

/*
 * What other programs write need not be UTF-8. valkey-glide rejects a reply that has other bytes in it, where others
 * replace them.
 */

for (const lockType of LOCK_TYPES) lockContract(lockType, glideClient, [foreignOwners]);
for (const one of packages) lockContract('spin', ioredisClient(one), [foreignOwners]);

const BYTES = Buffer.from([0xff, 0x20, 0x41]);

for (const kind of [redis6Client, glideClient, upstashClient]) {
  describeReal(`Beside what other programs write, through ${kind.name}`, () => {
    const fixture = new LockFixture('spin', kind).installed();
    const send = (...words: (string | Buffer)[]) => fixture.admin.send?.(fixture.nameOf('key'), words);

    it.each(['semaphore', 'read'] as const)(
      `A shared lock with leases of other programs is waited for, shown, and all of it is unlocked by force: %s, through ${kind.name}`,
      async (of) => {
        const members = [0xff, 0xfe].map((byte) => Buffer.concat([Buffer.from(`${of}:`), Buffer.from([byte]), BYTES]));
        const end = String(Date.now() + 60_000);
        for (const member of members) await send('ZADD', fixture.nameOf('key'), end, member);
        await send('PEXPIRE', fixture.nameOf('key'), '60000');
        const registry = fixture.registry();
        const lock = of === 'semaphore' ? registry.semaphore('key', { permits: 1 }) : registry.readWrite('key').write;
        expect(await lock.tryLock()).toBeNull();
        expect(await lock.inspect()).toMatchObject({ owner: expect.stringMatching(/^\{f[ef]\}\{ff\} A$/), holders: 2 });
        expect(await lock.forceUnlock()).toMatchObject({ held: true, holders: 2 });
        expect(await fixture.isInRedis('key')).toBe(false);
        await (await lock.lock()).unlock();
      },
    );

    it(`A counter that another program has overwritten begins anew, and keeps nobody from a lock, through ${kind.name}`, async () => {
      const { registryKey } = fixture;
      const registry = fixture.registry({ fencing: true });
      for (const lock of [registry.obtain('key'), registry.readWrite('key2').write]) {
        const fence = `{${registryKey}:${lock.key}}:fence`;
        await send('SET', fence, BYTES);
        const lease = await lock.lock();
        expect(lease.fencingToken).toBeGreaterThan(0);
        await send('SET', fence, BYTES);
        expect(await lock.inspect()).toMatchObject({ held: true, fencingToken: undefined });
        await lease.unlock();
      }
    });

    it(`A result of once that another program has overwritten is an error that names it, through ${kind.name}`, async () => {
      await send('SET', `{${fixture.nameOf('key')}}:once`, BYTES, 'PX', '60000');
      const once = fixture.registry().once('key', () => 1, { keepFor: 1_000 });
      await expect(once).rejects.toThrow(/is not JSON/);
    });
  });
}

describeReal('A message that another program publishes', () => {
  const fixture = new LockFixture('pub-sub', glideClient).installed();

  it('A message that is no UTF-8 does not end the messages that valkey-glide gets', async () => {
    const [client] = fixture.clients as unknown as [ReturnType<typeof fromGlide>];
    const channel = `${fixture.registryKey}-channel:key`;
    const messages: string[] = [];
    const listener = (message: unknown) => void messages.push(String(message));
    await client.subscribe(channel, listener);
    for (const message of [BYTES, 'text']) await fixture.admin.send?.('key', ['PUBLISH', channel, message]);
    await until(() => messages.length === 2);
    expect(messages).toEqual([BYTES.toString(), 'text']);
    await client.unsubscribe(channel, listener);
  });
});
