import { afterEach, describe, expect, it, jest } from '@jest/globals';
import { RedisLockRegistry } from '../../lib';
import { type WebLock, type WebLockOptions, type WebLocks, webLocks } from '../../lib/integrations/web-locks';
import type { BackedLockRegistry } from '../../lib/registry/backed-lock-registry';
import { InMemoryLockRegistry, InMemoryLocks } from '../../lib/testing';
import { createRealClient, describeReal, uniqueKey } from '../support/redis';
import { until } from '../support/until';

/** Two registries, as of two processes. */
type Open = () => Promise<readonly [BackedLockRegistry, BackedLockRegistry]>;

const inMemory: Open = async () => {
  const locks = new InMemoryLocks();
  return [new InMemoryLockRegistry({ locks }), new InMemoryLockRegistry({ locks })];
};

const onRedis: Open = async () => {
  const registryKey = uniqueKey();
  const open = async () => new RedisLockRegistry(await createRealClient(), { registryKey, idleBetweenTries: 10 });
  return [await open(), await open()];
};

/** A callback that holds its lock until `end` is called. */
function holder() {
  const locks: (WebLock | null)[] = [];
  const ends: (() => void)[] = [];
  return {
    locks,
    end: () => ends.splice(0).forEach((end) => void end()),
    callback(lock: WebLock | null): Promise<void> {
      locks.push(lock);
      return new Promise((end) => ends.push(end));
    },
  };
}

/**
 * What the tests of the Web Locks API in web-platform-tests assert, as far as it concerns locks of several processes:
 * nothing of frames, workers and the storage of a browser.
 */
function apply(open: Open): void {
  let registries: Awaited<ReturnType<Open>> | undefined;

  afterEach(async () => {
    for (const registry of registries ?? []) await registry.close({ timeout: 0 });
  });

  async function managers(): Promise<[WebLocks, WebLocks]> {
    registries = await open();
    return [webLocks(registries[0]), webLocks(registries[1])];
  }

  it('calls back with a lock of the name and the mode, exclusive by default', async () => {
    const [locks] = await managers();
    await locks.request('a', (lock) => expect(lock).toMatchObject({ name: 'a', mode: 'exclusive' }));
    await locks.request('a', {}, (lock) => expect(lock).toMatchObject({ name: 'a', mode: 'exclusive' }));
    for (const mode of ['exclusive', 'shared'] as const) {
      await locks.request('a', { mode }, (lock) => expect(lock).toMatchObject({ name: 'a', mode }));
    }
  });

  it('resolves to what the callback returns, now or later, and rejects with what it throws', async () => {
    const [locks] = await managers();
    expect(await locks.request('a', () => 1)).toBe(1);
    expect(await locks.request('a', async () => 2)).toBe(2);
    const error = new Error('of the callback');
    const thrower = () => {
      throw error;
    };
    await expect(locks.request('a', thrower)).rejects.toBe(error);
    await expect(locks.request('a', async () => thrower())).rejects.toBe(error);
    expect(await locks.request('a', { ifAvailable: true }, (lock) => lock?.name)).toBe('a'); // it is free again
  });

  it('never calls back before it has returned', async () => {
    const [locks] = await managers();
    let hasReturned = false;
    const request = locks.request('a', () => hasReturned);
    hasReturned = true;
    expect(await request).toBe(true);
  });

  it.each<[string, unknown[]]>([
    ['no callback', []],
    ['undefined', [undefined]],
    ['no function', [{}, 'callback']],
    ['a mode in place of options', ['shared', () => undefined]],
    ['an unknown mode', [{ mode: 'upgradable' }, () => undefined]],
    ['null as mode', [{ mode: null }, () => undefined]],
    ['no signal', [{ signal: 'signal' }, () => undefined]],
    ['null as signal', [{ signal: null }, () => undefined]],
  ])('rejects with a TypeError for %s', async (_name, rest) => {
    const [locks] = await managers();
    const request = locks.request as (...args: unknown[]) => Promise<unknown>;
    await expect(request('a', ...rest)).rejects.toBeInstanceOf(TypeError);
  });

  it('rejects with a TypeError for a symbol as the name', async () => {
    const [locks] = await managers();
    await expect(locks.request(Symbol('a') as never, () => undefined)).rejects.toBeInstanceOf(TypeError);
  });

  it.each<[string, string, WebLockOptions]>([
    ['a name that begins with a hyphen', '-a', {}],
    ['a name that is a hyphen', '-', {}],
    ['steal', 'a', { steal: true }],
    ['steal with ifAvailable', 'a', { steal: true, ifAvailable: true }],
    ['a signal with ifAvailable', 'a', { signal: new AbortController().signal, ifAvailable: true }],
  ])('rejects with a NotSupportedError for %s, and does not call back', async (_name, name, options) => {
    const [locks] = await managers();
    let calls = 0;
    await expect(locks.request(name, options, () => calls++)).rejects.toMatchObject({ name: 'NotSupportedError' });
    expect(calls).toBe(0);
  });

  it.each(['a b', 'ｕｎｉｃｏｄｅ', '_', 'x'.repeat(1_000), 'constructor', '{tag}'])(
    'takes the name %p',
    async (name) => {
      const [locks] = await managers();
      expect(await locks.request(name, (lock) => lock?.name)).toBe(name);
    },
  );

  it.each([
    ['{}', 'RangeError'],
    ['a{b', 'RangeError'],
    ['a}b', 'RangeError'],
    ['\ud800', 'TypeError'],
    ['', 'TypeError'],
  ])('refuses the name %p, which the specification allows, with a %s', async (name, error) => {
    const [locks] = await managers();
    for (const options of [{}, { ifAvailable: true }]) {
      await expect(locks.request(name, options, () => undefined)).rejects.toMatchObject({ name: error });
    }
    expect(await locks.query()).toEqual({ held: [], pending: [] });
  });

  it('lets exclusive requests of a name have the lock one after the other, in their order', async () => {
    const [one, other] = await managers();
    const [first, second] = [holder(), holder()];
    const requests = [one.request('a', first.callback)];
    await until(() => first.locks.length === 1);
    requests.push(
      other.request('a', second.callback),
      other.request('b', () => undefined),
    );
    await requests[2];
    expect(second.locks).toEqual([]);
    first.end();
    await until(() => second.locks.length === 1);
    second.end();
    await Promise.all(requests);
  });

  it('lets shared requests have the lock together, and an exclusive one alone after them; later ones queue behind it', async () => {
    const [one, other] = await managers();
    const [readers, writer, late] = [holder(), holder(), holder()];
    const shared = { mode: 'shared' } as const;
    const requests = [one.request('a', shared, readers.callback), other.request('a', shared, readers.callback)];
    await until(() => readers.locks.length === 2);
    requests.push(one.request('a', writer.callback));
    await until(async () => (await other.request('a', { ...shared, ifAvailable: true }, (lock) => lock)) === null);
    requests.push(other.request('a', shared, late.callback));
    readers.end();
    await until(() => writer.locks.length === 1);
    expect(late.locks).toEqual([]);
    writer.end();
    await until(() => late.locks.length === 1);
    late.end();
    await Promise.all(requests);
  });

  /** `S1 X1`: a shared request, and after it an exclusive one. Resolves to the order in which they have the lock. */
  async function granted(plan: string, from: (label: string) => WebLocks, made: () => unknown): Promise<string> {
    const order: string[] = [];
    const requests: Promise<void>[] = [];
    for (const label of plan.split(' ')) {
      const mode = label.startsWith('S') ? 'shared' : 'exclusive';
      const hold = async () => {
        order.push(label);
        await new Promise((resolve) => setTimeout(resolve, 5));
      };
      requests.push(from(label).request('a', { mode }, hold));
      await made();
    }
    await Promise.all(requests);
    return order.join(' ');
  }

  it.each(['S1 X1 S2', 'X1 S1 X2', 'X1 X2 S1', 'S1 S2 X1 X2 S3 X3 S4'])(
    'grants the requests of a registry in the order in which they are made: %s',
    async (plan) => {
      const [locks] = await managers();
      expect(
        await granted(
          plan,
          () => locks,
          () => undefined,
        ),
      ).toBe(plan); // in one turn of the event loop
      const pause = () => new Promise((resolve) => setImmediate(resolve));
      expect(await granted(plan, () => locks, pause)).toBe(plan);
      const first = holder();
      const held = locks.request('a', first.callback);
      await until(() => first.locks.length === 1);
      const waiting = granted(plan, () => locks, pause);
      await until(async () => (await locks.query()).pending.length === plan.split(' ').length);
      first.end();
      expect(await waiting).toBe(plan);
      await held;
      const more = webLocks(registries?.[0] as BackedLockRegistry); // as of another module of the process
      expect(
        await granted(
          plan,
          (label) => (label.endsWith('1') ? locks : more),
          () => undefined,
        ),
      ).toBe(plan);
    },
  );

  it('lets the requests behind one go on when it leaves, be it in front of them or among them', async () => {
    const [locks] = await managers();
    const [readers, never] = [holder(), holder()];
    const shared = { mode: 'shared' } as const;
    const requests = [locks.request('a', shared, readers.callback)];
    await until(() => readers.locks.length === 1);
    const [one, two] = [new AbortController(), new AbortController()];
    const waiting = [one, two].map(({ signal }) => locks.request('a', { signal }, never.callback));
    const rejected = Promise.all(
      waiting.map((request) => expect(request).rejects.toMatchObject({ name: 'AbortError' })),
    );
    requests.push(locks.request('a', shared, readers.callback));
    expect(await locks.request('a', { ...shared, ifAvailable: true }, (lock) => lock)).toBeNull();
    const early = { ...shared, signal: AbortSignal.abort('early') };
    await expect(locks.request('a', early, never.callback)).rejects.toBe('early'); // and does not wait for its turn
    two.abort();
    one.abort();
    await rejected;
    await until(() => readers.locks.length === 2);
    readers.end();
    await Promise.all(requests);
    expect(never.locks).toEqual([]);
  });

  it('with ifAvailable comes after requests that were made before, also where these have no lock yet', async () => {
    const [locks] = await managers();
    const options = { ifAvailable: true };
    const isThere = (lock: WebLock | null) => lock !== null;
    const exclusive = locks.request('a', () => undefined);
    expect(await locks.request('a', { ...options, mode: 'shared' }, isThere)).toBe(false);
    await exclusive;
    const reader = holder();
    const request = locks.request('a', { mode: 'shared' }, reader.callback);
    expect(await locks.request('a', options, isThere)).toBe(false);
    await until(() => reader.locks.length === 1);
    reader.end();
    await request;
    expect(await locks.request('a', options, isThere)).toBe(true);
  });

  it('with ifAvailable calls back at once: with the lock, or with null, whose result and error count too', async () => {
    const [one, other] = await managers();
    const first = holder();
    const request = one.request('a', { ifAvailable: true }, first.callback);
    await until(() => first.locks.length === 1);
    expect(first.locks[0]).not.toBeNull();
    const options = { ifAvailable: true };
    expect(await other.request('a', options, (lock) => lock === null)).toBe(true);
    expect(await one.request('a', options, (lock) => lock === null)).toBe(true); // of the same process
    await expect(other.request('a', options, () => Promise.reject(new Error('no')))).rejects.toThrow('no');
    first.end();
    await request;
  });

  it('waits in a nested request of the same name, and gets null there with ifAvailable', async () => {
    const [locks] = await managers();
    const nested = await locks.request('a', async () => locks.request('a', { ifAvailable: true }, (lock) => lock));
    expect(nested).toBeNull();
    const signal = AbortSignal.timeout(20);
    const waiting = locks.request('a', async () => locks.request('a', { signal }, () => 'entered'));
    await expect(waiting).rejects.toMatchObject({ name: 'TimeoutError' });
  });

  it('rejects with the reason of a signal that has aborted, or aborts before the grant, and does not call back', async () => {
    const [one, other] = await managers();
    let calls = 0;
    const aborted = AbortSignal.abort('early');
    await expect(one.request('a', { signal: aborted }, () => calls++)).rejects.toBe('early');
    const first = holder();
    const request = one.request('a', first.callback);
    await until(() => first.locks.length === 1);
    const controller = new AbortController();
    const waiting = other.request('a', { signal: controller.signal }, () => calls++);
    const rejected = expect(waiting).rejects.toMatchObject({ name: 'AbortError' });
    await until(async () => (await other.query()).pending.length === 1);
    controller.abort();
    await rejected;
    expect(await other.query()).toEqual({ held: [], pending: [] });
    first.end();
    await request;
    await other.request('a', () => undefined); // nothing is left of it
    expect(calls).toBe(0);
  });

  it('does nothing when a signal aborts after the grant', async () => {
    const [locks] = await managers();
    const controller = new AbortController();
    const result = locks.request('a', { signal: controller.signal }, async (lock) => {
      controller.abort();
      return lock?.name;
    });
    expect(await result).toBe('a');
  });

  it('answers a query with what is held and what waits, of its own process', async () => {
    const [one, other] = await managers();
    expect(await one.query()).toEqual({ held: [], pending: [] });
    const first = holder();
    const requests = [one.request('a', { mode: 'shared' }, first.callback)];
    await until(() => first.locks.length === 1);
    requests.push(one.request('a', first.callback));
    const clientId = registries?.[0].id;
    const expected = {
      held: [{ name: 'a', mode: 'shared', clientId }],
      pending: [{ name: 'a', mode: 'exclusive', clientId }],
    };
    expect(await one.query()).toEqual(expected);
    const { held, pending } = await one.query();
    for (const info of [...held, ...pending]) info.name = 'changed';
    held.splice(0);
    expect(await one.query()).toEqual(expected);
    expect(await other.query()).toEqual({ held: [], pending: [] });
    first.end();
    await until(() => first.locks.length === 2);
    first.end();
    await Promise.all(requests);
    expect(await one.query()).toEqual({ held: [], pending: [] });
  });
}

describe('The Web Locks API over locks in memory', () => {
  apply(inMemory);

  it('answers a query at any time with a request that has not ended: it waits, or is held', async () => {
    const [registry, other] = await inMemory();
    const locks = webLocks(registry);
    let isCalledBack = false;
    const looks: ReturnType<WebLocks['query']>[] = [];
    const request = locks.request('a', () => (isCalledBack = true));
    while (!isCalledBack) {
      looks.push(locks.query());
      await undefined; // the next promise job
    }
    for (const { held, pending } of await Promise.all(looks)) expect([...held, ...pending]).toHaveLength(1);
    await request;
    await Promise.all([registry.close(), other.close()]);
  });
});

describeReal('The Web Locks API over Redis', () => apply(onRedis));

describe('A line of requests of the Web Locks API', () => {
  it('ends with an error for all when Redis is silent: none waits until those before it have failed one by one', async () => {
    jest.useFakeTimers();
    try {
      const registry = new InMemoryLockRegistry({ unavailableAfter: 1_000 });
      const locks = webLocks(registry);
      registry.locks.goSilent();
      let failed = 0;
      for (let index = 0; index < 20; index++) {
        const mode = index % 2 === 0 ? 'shared' : 'exclusive';
        void locks
          .request('a', { mode }, () => undefined)
          .catch(({ name }: Error) => {
            if (name === 'CannotAcquireLockError') failed++;
          });
      }
      await jest.advanceTimersByTimeAsync(900);
      expect(failed).toBe(0);
      await jest.advanceTimersByTimeAsync(200);
      expect(failed).toBe(1); // those behind it ask together from now on
      await jest.advanceTimersByTimeAsync(1_000);
      expect(failed).toBe(20);
      await registry.close({ timeout: 0 });
    } finally {
      jest.useRealTimers();
    }
  });

  it('ends with the registry, whose error all of it have', async () => {
    const registry = new InMemoryLockRegistry();
    const locks = webLocks(registry);
    const reader = holder();
    const held = locks.request('a', { mode: 'shared' }, reader.callback);
    await until(() => reader.locks.length === 1);
    const modes = ['exclusive', 'shared', 'exclusive'] as const;
    const waiting = modes.map((mode) => locks.request('a', { mode }, () => 'entered'));
    const rejected = waiting.map((request) => expect(request).rejects.toMatchObject({ name: 'RegistryClosedError' }));
    const closed = registry.close();
    await Promise.all(rejected);
    reader.end();
    await Promise.all([closed, held]);
  });
});

describe('A lost lock of the Web Locks API', () => {
  it('rejects the request after its callback, unless that has failed', async () => {
    const registry = new InMemoryLockRegistry();
    const locks = webLocks(registry);
    const losing = (end: () => void) =>
      locks.request('a', (lock) => {
        registry.locks.expire('a');
        expect(lock?.signal.aborted).toBe(false); // the release finds it
        end();
      });
    await expect(losing(() => undefined)).rejects.toMatchObject({ name: 'LockLostError' });
    const error = new Error('of the callback');
    const failing = losing(() => {
      throw error;
    });
    await expect(failing).rejects.toBe(error);
    await registry.close();
  });
});
