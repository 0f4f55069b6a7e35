import { beforeEach, describe, expect, it } from '@jest/globals';
import { RedisLockRegistry, type RedisLockRegistryOptions } from '../../../lib';
import { LEFT_TO_POLLERS } from '../../../lib/kinds/redisson/kind';
import { ACQUIRE, KEEP, LEAVE, RELEASE } from '../../../lib/kinds/redisson-fair/scripts';
import type { Script } from '../../../lib/redis/script';
import { SLACK } from '../../contract/timing';
import { machineDelay } from '../../support/machine-delay';
import { messagesOn } from '../../support/messages';
import { createRealClient, describeReal, type TestClient, uniqueKey } from '../../support/redis';
import { untilQuiet } from '../../support/server-load';
import { createRegistry } from '../../support/test-registry';
import { until, WAIT_LIMIT } from '../../support/until';

/** Owner values in the form of Redisson: client UUID and thread id. */
const [JAVA_1, JAVA_2] = ['5b1b0d4e-0a3c-4f5e-9d3a-3f9a6a3a1c11:1', '5b1b0d4e-0a3c-4f5e-9d3a-3f9a6a3a1c11:2'] as const;

/** ms; Redisson's fairLockWaitTimeout. */
const WAIT = 300_000;

describeReal('Beside Redisson', () => {
  let client: TestClient;
  let java: TestClient;
  let key: string;

  beforeEach(async () => {
    client ??= await createRealClient();
    java ??= await createRealClient();
    key = uniqueKey('rlock');
  });

  describe('The redisson lock, as RLock sees it', () => {
    const registry = (options: Partial<RedisLockRegistryOptions> = {}) =>
      createRegistry(client, { registryKey: '', lockType: 'redisson', idleBetweenTries: 10, ...options }).registry;

    it('A redisson lock is a hash with one field, "<client id>:<number>", whose value is the hold count, and lives for 30 s', async () => {
      const lease = await registry().obtain(key).lock();
      const fields = await java.hGetAll(key);
      expect(Object.keys(fields)).toHaveLength(1);
      expect(Object.keys(fields)[0]).toMatch(/^[^:]+:\d+$/);
      expect(Object.values(fields)).toEqual(['1']);
      const life = await java.pTTL(key);
      expect(life).toBeLessThanOrEqual(30_000);
      expect(life).toBeGreaterThan(30_000 - SLACK - machineDelay());
      await lease.unlock();
      expect(await java.exists(key)).toBe(0);
    });

    it('A redisson lock is named by the key alone, or by registryKey and key', async () => {
      await registry({ registryKey: 'mapped' }).obtain(key).lock();
      expect(await java.exists(`mapped:${key}`)).toBe(1);
      expect(await java.exists(key)).toBe(0);
      expect(() => new RedisLockRegistry(client, { registryKey: '', lockType: 'fair' })).toThrow(TypeError);
    });

    it.each([
      ['no braces', 'name', 'redisson_lock__channel:{name}'],
      ['a hash tag', '{tag}name', 'redisson_lock__channel:{tag}name'],
      ['a brace', 'na{me', 'redisson_lock__channel:na{me'],
    ])('A redisson lock tells its release by "0" on the channel of a name with %s', async (_, name, channel) => {
      const [ours, theirs] = [`${key}${name}`, channel.replace(/name|na\{me|\{tag\}name/, `${key}$&`)];
      const messages = await messagesOn(createRealClient(), theirs);
      await registry().run(ours, () => undefined);
      await until(() => messages.length > 0);
      expect(messages).toEqual(['0']);
    });

    it("A redisson lock waits for RLock's message", async () => {
      await java.hSet(key, JAVA_1, '1');
      await java.pExpire(key, 60_000);
      const waiting = registry({ idleBetweenTries: 60_000 }).obtain(key).lock();
      const channel = `redisson_lock__channel:{${key}}`;
      await until(async () => (await java.pubSubNumSub(channel))[channel]);
      await java.del(key);
      await java.publish(channel, '0');
      await (await waiting).unlock();
    });

    it('A redisson lock polls where no release is published, as with RSpinLock, and where the key has no expiry', async () => {
      await java.hSet(key, JAVA_1, '1');
      const waiting = registry().obtain(key).lock({ waitTime: WAIT_LIMIT });
      await java.del(key);
      await (await waiting).unlock();
    });

    it('A redisson lock detects by renewal and by unlock that RLock has acquired it after a loss (P6)', async () => {
      const [first, second] = ['renewed', 'unlocked'].map((name) => `${key}:${name}`) as [string, string];
      const leases = await Promise.all([first, second].map((name) => registry().obtain(name).lock()));
      for (const name of [first, second]) {
        await java.del(name);
        await java.hSet(name, JAVA_1, '1');
        await java.pExpire(name, 60_000);
      }
      await expect(leases[0]?.renew()).rejects.toMatchObject({ reason: 'stolen' });
      await expect(leases[1]?.unlock()).rejects.toMatchObject({ reason: 'stolen' });
      for (const name of [first, second]) expect(await java.hGetAll(name)).toEqual({ [JAVA_1]: '1' });
    });

    it('A redisson lock and the string types reject each other’s keys at once, with the reason (P13)', async () => {
      const spin = registry({ lockType: 'spin', registryKey: 'string' });
      const redisson = registry({ registryKey: 'string' });
      await spin.run(key, () => expect(redisson.obtain(key).lock()).rejects.toThrow(/WRONGTYPE/));
      await redisson.run(key, () => expect(spin.obtain(key).lock()).rejects.toThrow(/WRONGTYPE/));
    });

    it('A redisson lock continues the tokens of RFencedLock, and issues none for a refused attempt', async () => {
      const token = `redisson_lock_token:{${key}}`;
      await java.set(token, '41');
      await registry({ fencing: true }).run(key, async ({ fencingToken }) => {
        expect(fencingToken).toBe(42);
        expect(await registry({ fencing: true }).obtain(key).tryLock({ waitTime: 400 })).toBeNull();
      });
      expect(await java.get(token)).toBe('42');
      expect(await java.pTTL(token)).toBe(-1);
    });
  });

  describe('The redisson-fair lock, as RedissonFairLock sees it', () => {
    let queue: string;
    let timeouts: string;

    /** A registry as of a new process. */
    const process = (options: Partial<RedisLockRegistryOptions> = {}) =>
      createRegistry(client, { registryKey: '', lockType: 'redisson-fair', idleBetweenTries: 10, ...options }).registry;
    const lock = (options?: Partial<RedisLockRegistryOptions>) => process(options).obtain(key);
    const queued = (many: number) => until(async () => (await java.lLen(queue)) === many);
    /** What is published for this waiter from now on. */
    const messagesTo = (owner: string) => messagesOn(createRealClient(), `redisson_lock__channel:{${key}}:${owner}`);
    const score = async (owner: string | undefined) => Number(await java.zScore(timeouts, owner as string));
    /** Puts a Java waiter into the queue, as Redisson's script does. */
    const enqueue = async (owner: string, timeout: number) => {
      await java.zAdd(timeouts, { score: timeout, value: owner });
      await java.rPush(queue, owner);
    };

    beforeEach(() => {
      queue = `redisson_lock_queue:{${key}}`;
      timeouts = `redisson_lock_timeout:{${key}}`;
    });

    it.each([
      ['of Redisson', WAIT, {}],
      ['that is configured', 5_000, { fairLockWaitTimeout: 5_000 }],
    ])(
      'A redisson-fair lock queues with the timeout of the waiter before, or the ttl of the key, plus the wait time-out %s',
      async (_, wait, options) => {
        const holder = await lock(options).lock({ ttl: 20_000 });
        const first = lock(options).lock();
        await queued(1);
        const second = lock(options).lock();
        await queued(2);
        const owners = await java.lRange(queue, 0, -1);
        const [one, two] = [await score(owners[0]), await score(owners[1])];
        expect(Math.abs(one - (Date.now() + 20_000 + wait))).toBeLessThan(SLACK + machineDelay());
        expect(Math.abs(two - (one + wait))).toBeLessThanOrEqual(2);
        await holder.unlock();
        const next = await first;
        // The field says when it was acquired, the position when it was taken.
        const [[owner = '', count] = []] = Object.entries(await java.hGetAll(key));
        const processOf = (one = '') => one.replace(/\d+$/, '');
        expect([processOf(owner), count]).toEqual([processOf(owners[0]), '1']);
        expect(await java.lRange(queue, 0, -1)).toEqual([owners[1]]);
        expect(await java.zRange(timeouts, 0, -1)).toEqual([owners[1]]);
        expect(await score(owners[1])).toBe(two - wait);
        await next.unlock();
        await (await second).unlock();
        expect(await java.exists([key, queue, timeouts])).toBe(0);
      },
    );

    it('A redisson-fair lock has one position in the queue for each process, with any number of callers and polls', async () => {
      const holder = await lock().lock();
      const mine = lock({ idleBetweenTries: 1 });
      const waiting = Array.from({ length: 10 }, () => mine.tryLock({ waitTime: 300 }));
      await queued(1);
      expect(await Promise.all(waiting)).toEqual(waiting.map(() => null));
      await holder.unlock();
      await until(async () => (await java.exists([key, queue, timeouts])) === 0);
    });

    it.each(['its time is over', 'its signal aborts', 'its registry is closed'])(
      'A redisson-fair lock takes a waiter out, and lets those behind move up, when %s',
      async (how) => {
        const holder = await lock().lock();
        const controller = new AbortController();
        const leaver = process();
        const leaving = leaver
          .obtain(key)
          .lock({ waitTime: how === 'its time is over' ? 300 : 60_000, signal: controller.signal });
        const left = expect(leaving).rejects.toThrow();
        await queued(1);
        const behind = Date.now() + 30_000 + 2 * WAIT;
        await enqueue(JAVA_2, behind);
        if (how === 'its signal aborts') controller.abort();
        if (how === 'its registry is closed') await leaver.close();
        if (how === 'its registry is closed') expect(await java.lLen(queue)).toBe(1);
        await left;
        await until(async () => (await java.zScore(timeouts, JAVA_2)) === behind - WAIT);
        expect(await java.lRange(queue, 0, -1)).toEqual([JAVA_2]);
        expect(await java.zRange(timeouts, 0, -1)).toEqual([JAVA_2]);
        await holder.unlock();
      },
    );

    it('A redisson-fair lock wakes only the first in the queue by "0" on its own channel, on release', async () => {
      const messages: string[] = [];
      const listener = await createRealClient();
      await listener.pSubscribe(`redisson_lock__channel:*${key}*`, (message, channel) => {
        messages.push(`${channel} ${message}`);
      });
      const holder = await lock().lock();
      await enqueue(JAVA_1, Date.now() + WAIT);
      await enqueue(JAVA_2, Date.now() + 2 * WAIT);
      await holder.unlock();
      await until(() => messages.length > 0);
      expect(messages).toEqual([`redisson_lock__channel:{${key}}:${JAVA_1} 0`]);
    });

    it('A redisson-fair lock wakes the next waiter when the first one leaves while the lock is free', async () => {
      await java.hSet(key, JAVA_1, '1');
      const controller = new AbortController();
      const left = expect(lock({ idleBetweenTries: 60_000 }).lock({ signal: controller.signal })).rejects.toThrow();
      await queued(1);
      await enqueue(JAVA_2, Date.now() + 2 * WAIT);
      const messages = await messagesTo(JAVA_2);
      // As after a release whose message to the first waiter was lost.
      await java.del(key);
      controller.abort();
      await left;
      await until(() => messages.length > 0);
      expect(messages).toEqual(['0']);
    });

    it('A redisson-fair lock waits for its own channel only, and is notified by it', async () => {
      await java.hSet(key, JAVA_1, '1');
      await java.pExpire(key, 60_000);
      const waiting = lock({ idleBetweenTries: 60_000 }).lock();
      await queued(1);
      const channel = `redisson_lock__channel:{${key}}:${await java.lIndex(queue, 0)}`;
      await until(async () => (await java.pubSubNumSub(channel))[channel]);
      await java.del(key);
      await java.publish(channel, '0');
      await (await waiting).unlock();
    });

    it('A redisson-fair lock never overtakes the queue, and does not enqueue for a tryLock', async () => {
      await enqueue(JAVA_1, Date.now() + WAIT);
      expect(await lock().tryLock()).toBeNull();
      expect(await java.lRange(queue, 0, -1)).toEqual([JAVA_1]);
      expect(await java.exists(key)).toBe(0);
    });

    it('A redisson-fair lock acquires the lock after the timeout of the waiters before it', async () => {
      await enqueue(JAVA_1, Date.now() - 1);
      const timeout = Date.now() + 300;
      await enqueue(JAVA_2, timeout);
      const lease = await lock().lock();
      expect(Date.now() - timeout).toBeGreaterThan(-50);
      expect(Date.now() - timeout).toBeLessThan(SLACK + machineDelay());
      expect(await java.exists([queue, timeouts])).toBe(0);
      await lease.unlock();
    });

    it.each(['queue', 'timeouts'])(
      'A redisson-fair lock enters a waiter again, behind those that came since, whose %s was deleted',
      async (what) => {
        const holder = await lock().lock();
        const waiting = lock().lock();
        await queued(1);
        const [owner = ''] = await java.lRange(queue, 0, -1);
        const since = Date.now() + WAIT;
        await java
          .multi()
          .del(what === 'queue' ? queue : timeouts)
          .lRem(queue, 0, owner)
          .zAdd(timeouts, { score: since, value: JAVA_1 })
          .rPush(queue, JAVA_1)
          .exec();
        await queued(2);
        expect(await java.lRange(queue, 0, -1)).toEqual([JAVA_1, owner]);
        expect(await score(owner)).toBe(since + WAIT);
        await java.zRem(timeouts, JAVA_1);
        await java.lRem(queue, 0, JAVA_1);
        await holder.unlock();
        await (await waiting).unlock();
        expect(await java.exists([key, queue, timeouts])).toBe(0);
      },
    );

    it.each(['its waiter gives up', 'somebody acquires the lock'])(
      'A redisson-fair lock leaves no timeouts behind when the queue was deleted and %s',
      async (what) => {
        const holder = await lock().lock();
        const isOver = new AbortController();
        const left = expect(lock({ idleBetweenTries: 60_000 }).lock({ signal: isOver.signal })).rejects.toThrow();
        await queued(1);
        // A waiter asks once more when it listens. It would find the lock free below.
        await untilQuiet(java);
        await java.zAdd(timeouts, { score: Date.now() + WAIT, value: JAVA_1 });
        await java.del(queue);
        if (what === 'its waiter gives up') isOver.abort();
        else {
          await java.del(key);
          await (await lock().lock()).unlock();
        }
        await until(async () => (await java.exists(timeouts)) === 0);
        isOver.abort();
        await left;
        await holder.unlock().catch(() => undefined);
      },
    );

    const run = async ({ source }: Script, owner: string, ...last: string[]) => {
      const args = [owner, '60000', String(WAIT), 'PUBLISH', `redisson_lock__channel:{${key}}`, ...last];
      return (await java.eval(source, { keys: [key, queue, timeouts], arguments: args })) as unknown[];
    };

    it('A redisson-fair lock removes the positions whose time is over, and all earlier ones of its process, and keeps its own; those behind move up', async () => {
      await java.hSet(key, 'holder:1', '1');
      const at = Date.now();
      for (const [i, owner] of ['dead:1', 'me:9', 'java:1', 'me:10', 'java:2'].entries()) {
        await enqueue(owner, at - 1 + i * WAIT);
      }
      expect((await run(ACQUIRE, 'me:11', '1', 'me:11'))[2]).toBe(0);
      const owners = ['java:1', 'java:2', 'me:11'];
      expect(await java.lRange(queue, 0, -1)).toEqual(owners);
      const scores = owners.map((value, i) => ({ value, score: at - 1 + (i + 1) * WAIT }));
      expect(await java.zRangeWithScores(timeouts, 0, -1)).toEqual(scores);
      await enqueue('java:3', at + 4 * WAIT);
      await run(ACQUIRE, 'me:11', '1', 'me:11');
      expect(await java.lRange(queue, 0, -1)).toEqual([...owners, 'java:3']);
      expect((await run(ACQUIRE, 'java:1', '1', 'java:1'))[2]).toBe(1);
    });

    it.each([
      ['wakes', '0', 'another one finds it free', ACQUIRE, ['1', 'me:1'], WAIT - 10_000],
      ['wakes', '0', 'it is released', RELEASE, ['DEL'], 0],
      ['does not wake', LEFT_TO_POLLERS, 'it is left to pollers', LEAVE, ['DEL'], 0],
    ])(
      'A redisson-fair lock %s (%s) the first waiter whose time is not over when %s',
      async (_does, message, _when, script, last, leastReply) => {
        await enqueue('dead:1', Date.now() - 1);
        await enqueue(JAVA_1, Date.now() + WAIT);
        const messages = await messagesTo(JAVA_1);
        if (script !== ACQUIRE) await java.hSet(key, 'me:1', '1');
        expect((await run(script, 'me:1', ...last))[0]).toBeGreaterThan(leastReply);
        await until(() => messages.length > 0);
        expect(messages).toEqual([message]);
      },
    );

    it('A redisson-fair lock is granted again to an attempt that is sent again, and a position without a timeout gets one', async () => {
      for (let i = 0; i < 2; i++) expect(await run(ACQUIRE, 'holder:1', '1', 'holder:1')).toBe(1);
      await enqueue(JAVA_1, Date.now() + WAIT);
      await java.rPush(queue, 'me:1');
      await run(ACQUIRE, 'me:1', '1', 'me:1');
      const owners = [JAVA_1, 'me:1'];
      expect([await java.lRange(queue, 0, -1), await java.zRange(timeouts, 0, -1)]).toEqual([owners, owners]);
    });

    it('A redisson-fair lock that is kept tells the first waiter', async () => {
      await java.hSet(key, 'me:1', '1');
      await enqueue(JAVA_1, Date.now() + WAIT);
      const messages = await messagesTo(JAVA_1);
      await run(KEEP, 'me:1', '500', '500', '1000');
      await until(() => messages.length > 0);
      expect(await java.exists(key)).toBe(1);
    });

    it('A redisson-fair lock is not blocked by an earlier position of its own process', async () => {
      await enqueue('me:9', Date.now() + WAIT);
      expect(await run(ACQUIRE, 'me:10', '1', 'me:11')).toBe(1);
      expect(await java.exists([queue, timeouts])).toBe(0);
    });

    it('A redisson-fair lock is not blocked by a waiter without a timeout, which would block Java for ever', async () => {
      await java.rPush(queue, JAVA_1);
      const lease = await lock().tryLock();
      expect(lease).not.toBeNull();
      expect(await java.exists(queue)).toBe(0);
      await lease?.unlock();
    });
  });
});
