import { setTimeout as sleep } from 'node:timers/promises';
import { expect, it } from '@jest/globals';
import { machineDelay } from '../support/machine-delay';
import { startMonitor } from '../support/monitor';
import { CLIENT_KINDS, clientKinds, describePrivate, PrivateRedis } from '../support/private-redis';
import { createRegistry, rejection } from '../support/test-registry';
import { until } from '../support/until';

/** Calls that the client keeps for a silent server, before it is given no more. */
const KEPT = 250;

describePrivate.each(CLIENT_KINDS)('Calls that %s is not given, since the server is silent', (kind) => {
  const start = async () => {
    const redis = await PrivateRedis.start();
    const admin = await redis.connect();
    const client = await clientKinds[kind](redis.address);
    const locks = createRegistry(client, { commandTimeout: 10_000, unavailableAfter: 20_000 });
    const burst = (name: string, waitTime: number) =>
      Promise.allSettled(
        Array.from({ length: KEPT }, (_, i) => locks.registry.run(`${name} ${i}`, () => undefined, { waitTime })),
      );
    // Then it is known that keys may go together.
    await burst('before', 10_000);
    const monitor = await startMonitor({ socket: redis.address });
    redis.freeze();
    const kept = burst('kept', 400);
    await sleep(700);
    return { ...locks, redis, admin, monitor, kept };
  };

  it('Calls that a client is not given, since the server is silent, fail as before, and never come to the server', async () => {
    const { registry, redis, admin, monitor, kept, nameOf } = await start();
    for (const call of [1, 2, 3].map((i) => registry.obtain(`late ${i}`).lock({ waitTime: 200 }))) {
      await rejection(call, { name: 'CannotAcquireLockError', message: /Redis has not answered for/ });
    }
    await kept;
    redis.thaw();
    await registry.run('after', () => undefined);
    await until(async () => (await admin.keys(`*${nameOf('')}*`)).length === 0, { within: 20_000 });
    await monitor.settle();
    const keys = monitor.commands.flatMap(({ args }) => args);
    // One of them may have been sent as a probe.
    expect(keys.filter((key) => key === nameOf('late 2') || key === nameOf('late 3'))).toEqual([]);
    monitor.stop();
  });

  it('Calls that a client is not given, since the server is silent, go out with the first answer, where their callers still wait', async () => {
    const { registry, redis, monitor, kept } = await start();
    const locking = Promise.all(Array.from({ length: 50 }, (_, i) => registry.obtain(`late ${i}`).lock()));
    await sleep(300);
    redis.thaw();
    const startedAt = performance.now();
    for (const lease of await locking) await lease.unlock();
    expect(performance.now() - startedAt).toBeLessThan(2_000 + machineDelay());
    await kept;
    monitor.stop();
  });
});
