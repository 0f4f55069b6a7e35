import { expect, it } from '@jest/globals';
import { FaultyProxy } from '../../support/proxy';
import { atTheEnd, connectTo, describePrivate, untilTheEnd } from '../support/private-redis';
import { startSentinel } from '../support/sentinel';
import { callsOf } from '../support/server-load';
import { createRegistry } from '../support/test-registry';

// A sentinel client that is disconnected while it waits for a reply executes the command again, and resolves normally.
describePrivate('a sentinel client repeats the command whose reply was lost', () => {
  it('P7: a release whose second execution finds no key: a warning, and no loss', async () => {
    const sentinel = await untilTheEnd(startSentinel());
    const proxy = await untilTheEnd(FaultyProxy.start(sentinel.master));
    const admin = await connectTo(sentinel.master);
    const { host, port } = sentinel.master;
    const client = await sentinel.connect({ [`${host}:${port}`]: proxy.address });
    atTheEnd(() => client.destroy());
    const { registry, warnings, nameOf } = createRegistry(client, { expireAfter: 60_000 });
    await registry.run('warm-up', () => undefined);
    for (let i = 1; i <= 5; i++) {
      const lease = await registry.obtain('key').lock();
      await admin.configResetStat();
      const lost = proxy.loseReply(nameOf('key'));
      await lease.unlock();
      await lost;
      expect(await callsOf(admin, 'evalsha')).toBe(2);
      expect(await admin.exists(nameOf('key'))).toBe(0);
      expect(warnings.map(({ code }) => code)).toEqual(Array.from({ length: i }, () => 'RELEASE_UNCERTAIN'));
      expect(lease.signal.aborted).toBe(false);
    }
  });
});
