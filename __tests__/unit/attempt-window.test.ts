import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { type RedisClient, RedisLockRegistry } from '../../lib';
import { CONFIRM } from '../../lib/protocols/spring/spring-scripts';
import type { EvalOptions } from '../../lib/redis/client';
import { granted, refused } from '../support/mock-redis';

/** As many first attempts may be in flight. */
const LARGEST = 1_000;

const { setImmediate: realSetImmediate } = globalThis;

/** Everything that can go on without a timer has gone on. */
const settled = (): Promise<void> => new Promise((resolve) => realSetImmediate(resolve));

const names = (count: number): string[] => Array.from({ length: count }, (_, i) => `key-${i}`);

/** A registry whose commands are answered by hand. */
function answeredByHand() {
  const commands: { key: string; resolve(reply: unknown): void; reject(error: unknown): void }[] = [];
  const evalSha: RedisClient['evalSha'] = (_, { keys: [name = ''] = [] } = {}) =>
    new Promise((resolve, reject) => commands.push({ key: name.replace('window:', ''), resolve, reject }));
  const registry = new RedisLockRegistry({ evalSha, eval: evalSha }, { registryKey: 'window', handOver: 0 });
  /** Calls whose outcome does not matter. */
  const begin = (keys: readonly string[]) => {
    for (const key of keys)
      registry
        .obtain(key)
        .lock()
        .catch(() => undefined);
  };
  return { registry, commands, begin, sent: () => commands.map(({ key }) => key) };
}

// The silence of a slow machine is not that of the client.
beforeEach(() => void jest.useFakeTimers());
afterEach(() => void jest.useRealTimers());

describe('many calls at once', () => {
  it('go on when others are answered, in the order of the calls', async () => {
    const { registry, commands, sent } = answeredByHand();
    const keys = names(LARGEST + 200);
    const locking = keys.map((key) => registry.obtain(key).lock());
    await settled();
    expect(sent()).toEqual(keys.slice(0, LARGEST));
    for (const { resolve } of commands.slice(500, 550)) resolve(granted);
    await settled();
    expect(sent()).toEqual(keys.slice(0, LARGEST + 50));
    // A failure is an answer too. These callers try again, later.
    for (const { reject } of commands.slice(0, 100)) reject(new Error('Socket closed unexpectedly'));
    await settled();
    expect(sent()).toEqual(keys.slice(0, LARGEST + 150));
    for (const { resolve } of commands.slice(100)) resolve(granted);
    await settled();
    expect(sent()).toEqual(keys);
    for (const { resolve } of commands.slice(-50)) resolve(granted);
    await Promise.all(locking.slice(100));
  });

  it('have a grant in time that took long only because they waited for others', async () => {
    const { registry, begin, commands, sent } = answeredByHand();
    begin(names(10 * LARGEST));
    const locking = registry.obtain('last').lock();
    await settled();
    for (let answered = 0; !sent().includes('last'); answered += LARGEST) {
      await jest.advanceTimersByTimeAsync(90);
      for (const { resolve } of commands.slice(answered, answered + LARGEST)) resolve(granted);
      await settled();
    }
    commands[sent().indexOf('last')]?.resolve(granted);
    await locking;
    expect(sent().filter((key) => key === 'last')).toHaveLength(1);
  });

  it('are all sent where Redis says nothing', async () => {
    const { begin, sent } = answeredByHand();
    const keys = names(3 * LARGEST);
    begin(keys);
    await settled();
    expect(sent()).toHaveLength(LARGEST);
    await jest.advanceTimersByTimeAsync(1_000);
    expect(sent()).toEqual(keys);
  });

  it('do not wait for a server that is silent while another one answers', async () => {
    const { begin, commands, sent } = answeredByHand();
    const keys = names(LARGEST + 300);
    begin(keys);
    await settled();
    for (let ms = 0; ms < 400; ms += 10) {
      commands[ms]?.resolve(granted);
      await jest.advanceTimersByTimeAsync(10);
    }
    await settled();
    expect(sent()).toEqual(keys);
  });

  it('wait for half of their waitTime at most, and those before them no longer', async () => {
    const { registry, commands, sent } = answeredByHand();
    const keys = names(LARGEST + 200);
    keys.forEach((key, i) => {
      const waitTime = i === LARGEST + 100 ? 300 : Number.POSITIVE_INFINITY;
      registry
        .obtain(key)
        .lock({ waitTime })
        .catch(() => undefined);
    });
    await settled();
    // Redis answers, slowly.
    for (let ms = 0; ms < 140; ms += 10) {
      commands[ms]?.resolve(granted);
      await jest.advanceTimersByTimeAsync(10);
    }
    await settled();
    expect(sent()).toEqual(keys.slice(0, LARGEST + 14));
    commands[1]?.resolve(granted);
    await jest.advanceTimersByTimeAsync(15);
    await settled();
    expect(sent()).toEqual(keys.slice(0, LARGEST + 101));
  });

  it('are interrupted while they wait, and then send nothing', async () => {
    const { registry, commands, begin, sent } = answeredByHand();
    begin(names(LARGEST));
    const controller = new AbortController();
    const aborted = registry.obtain('aborted').lock({ signal: controller.signal });
    const tried = registry.obtain('closed').tryLock();
    const outcomes = Promise.allSettled([aborted, tried]);
    await settled();
    controller.abort(new Error('no longer'));
    await expect(aborted).rejects.toThrow('no longer');
    for (const { resolve } of commands.slice(0, 1)) resolve(refused(60_000));
    await settled();
    expect(sent()).toContain('closed');
    const late = registry.obtain('late').lock();
    // Until `late` is the next one to go on, and no further.
    await settled();
    const closing = registry.close({ timeout: 0 });
    await expect(late).rejects.toMatchObject({ name: 'RegistryClosedError' });
    for (const { resolve } of commands.slice(1)) resolve(refused(60_000));
    await settled();
    expect(sent()).not.toContain('aborted');
    expect(sent()).not.toContain('late');
    await jest.advanceTimersByTimeAsync(10_000);
    await Promise.all([outcomes, closing]);
  });

  it('are not taken for contention by a tryLock of the same key', async () => {
    const { registry, commands, begin, sent } = answeredByHand();
    begin(names(LARGEST));
    const lock = registry.obtain('same');
    void lock.lock();
    let outcome: unknown = 'none yet';
    const trying = lock.tryLock().then((lease) => (outcome = lease));
    await settled();
    commands[0]?.resolve(granted);
    await settled();
    expect(sent().at(-1)).toBe('same');
    expect(outcome).toBe('none yet');
    commands.at(-1)?.resolve(granted);
    await expect(trying).resolves.toBeNull();
  });
});

describe('many calls at once in a process that has released nothing', () => {
  /** A plain client of node-redis, as far as the library sees. `isTogether`: all keys are on one server. */
  function plain(isTogether: boolean) {
    const sizes: { isConfirmation: boolean; keys: number }[] = [];
    const evalSha = async (sha1: string, { keys = [] }: EvalOptions = {}) => {
      const isConfirmation = sha1 === CONFIRM.sha1 || sha1 === CONFIRM.forMany.sha1;
      sizes.push({ isConfirmation, keys: keys.length });
      const found = isConfirmation ? [1, 60_000] : granted;
      return keys.length === 1 ? found : keys.map((_, i) => (isTogether || i === 0 ? found : [0, 0]));
    };
    const client = { socketEpoch: 1, evalSha, eval: evalSha };
    return { registry: new RedisLockRegistry(client, { registryKey: 'proof', handOver: 0 }), sizes };
  }

  it('prove that all keys are on one server, and then go together', async () => {
    const { registry, sizes } = plain(true);
    await Promise.all(names(10 * LARGEST).map((key) => registry.obtain(key).lock()));
    const firstTogether = sizes.findIndex(({ keys, isConfirmation }) => keys > 1 && !isConfirmation);
    const proof = sizes.findIndex(({ keys, isConfirmation }) => keys > 20 && isConfirmation);
    expect(proof).toBeGreaterThan(0);
    expect(firstTogether).toBeGreaterThan(proof);
    expect(sizes.length).toBeLessThan(4 * LARGEST);
  });

  it('go alone where keys are on several servers', async () => {
    const { registry, sizes } = plain(false);
    await Promise.all(names(3 * LARGEST).map((key) => registry.obtain(key).lock()));
    expect(sizes.some(({ keys, isConfirmation }) => keys > 1 && isConfirmation)).toBe(true);
    expect(sizes.filter(({ keys, isConfirmation }) => keys > 1 && !isConfirmation)).toEqual([]);
  });
});
