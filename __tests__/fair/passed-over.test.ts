import { setTimeout as sleep } from 'node:timers/promises';
import { expect, it } from '@jest/globals';
import { describePrivate, PrivateRedis } from '../support/private-redis';
import { createProxiedRegistry } from '../support/proxied-registry';
import { uniqueKey } from '../support/redis';
import { untilQuiet } from '../support/server-load';
import { createRegistry } from '../support/test-registry';
import { until } from '../support/until';

const KEY = 'key';

/** Turns of others after which the first in the queue was passed over. */
const TOO_MANY = 10;

describePrivate('A fair lock whose first waiter let a grant run out', () => {
  const redis = PrivateRedis.install();

  it('gives it to that waiter first, once its process is back and others have come', async () => {
    const options = { registryKey: uniqueKey('passed-over'), lockType: 'fair', fencing: true } as const;
    const paused = await createProxiedRegistry(redis, options);
    const other = async () => createRegistry(await redis.connect(), options).registry;
    const [holder, ...newcomers] = [await other(), await other(), await other()];
    const first = await holder.obtain(KEY).lock();
    let isServed = false;
    const waiting = paused.registry.run(KEY, () => {
      isServed = true;
    });
    await untilQuiet(redis.admin);
    // Nothing reaches the process, and nothing comes from it: as when its event loop is blocked.
    paused.messages.replies.hold = true;
    paused.commands.requests.hold = true;
    await first.unlock();
    await until(async () => (await redis.admin.exists(paused.nameOf(KEY))) === 0, { within: 5_000 }); // the grant has run out
    const second = await holder.obtain(KEY).lock();
    paused.messages.replies.hold = false;
    paused.commands.requests.hold = false;
    // It polls once a second.
    await sleep(1_200);
    let turns = 0;
    const working = newcomers.map(async (registry) => {
      while (!isServed && turns < TOO_MANY) {
        await registry.run(KEY, () => {
          turns++;
        });
      }
    });
    await untilQuiet(redis.admin);
    await second.unlock();
    await Promise.all([waiting, ...working]);
    expect(turns).toBeLessThan(TOO_MANY);
  });
});
