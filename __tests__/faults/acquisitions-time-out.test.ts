import { expect, it } from '@jest/globals';
import { CLIENT_KINDS, clientKinds, describePrivate, PrivateRedis } from '../support/private-redis';
import { createRegistry } from '../support/test-registry';
import { until } from '../support/until';

const ACQUISITIONS = 1_000;
const AT_ONCE = 40;

describePrivate('acquisitions that time out at random moments', () => {
  it.each(CLIENT_KINDS)(
    `P1 P2: ${ACQUISITIONS} of %s leave no key behind`,
    async (kind) => {
      const redis = await PrivateRedis.start();
      const admin = await redis.connect();
      const proxy = await redis.proxy();
      const { registry, nameOf } = createRegistry(await clientKinds[kind](proxy.address), { expireAfter: 30_000 });
      const outcomes = { lease: 0, refused: 0, unanswered: 0, aborted: 0, late: 0 };
      let left = ACQUISITIONS;
      let busy = AT_ONCE;
      const begunAt = performance.now();

      // The network: as slow as the callers are impatient, and cut from time to time. Not so for redis 5: when it is cut
      // off in the very turn in which a command is sent, it gives every later reply to the wrong command.
      const network = (async () => {
        for (let step = 1; busy > 0; step++) {
          proxy.requests.delay = Math.random() * 20;
          proxy.replies.delay = Math.random() * 20;
          const changeAt = performance.now() + 50;
          await until(() => busy === 0 || performance.now() > changeAt);
          if (step % 12 === 0 && kind !== 'a client of redis 5') proxy.reset();
        }
      })();

      async function acquire(): Promise<void> {
        const startedAt = performance.now();
        // On a machine that is slower than all of them are patient, they become so until one has had its lock.
        const patience = Math.random() * (outcomes.lease === 0 ? 100 + (startedAt - begunAt) / 10 : 100);
        try {
          const lock = registry.obtain(`key-${Math.abs(left) % 60}`);
          const lease = await (left % 3 === 0
            ? lock.lock({ signal: AbortSignal.timeout(Math.ceil(patience)) })
            : lock.tryLock({ waitTime: patience + 1 }));
          outcomes[lease ? 'lease' : 'refused']++;
          // What is meant here is to be given back or given up; the release has its own tests.
          await lease?.unlock().catch(() => undefined);
        } catch (error) {
          outcomes[(error as Error).name === 'TimeoutError' ? 'aborted' : 'unanswered']++;
          if (performance.now() - startedAt > patience + 1_000) outcomes.late++;
        }
      }
      await Promise.all(
        Array.from({ length: AT_ONCE }, async () => {
          while (left-- > 0 || (outcomes.lease === 0 && performance.now() < begunAt + 20_000)) await acquire();
          busy--;
        }),
      );
      await network;

      // Each of these must have come up, or this test shows nothing.
      const { lease, aborted, unanswered, late } = outcomes;
      expect(lease).toBeGreaterThan(0);
      expect(aborted + unanswered).toBeGreaterThan(30);
      expect(late).toBe(0);
      proxy.requests.delay = 0;
      proxy.replies.delay = 0;
      // Far sooner than by their ttl.
      await until(async () => (await admin.keys(`${nameOf('')}*`)).length === 0, { within: 20_000 });
    },
    60_000,
  );
});
