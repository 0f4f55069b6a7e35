import { afterEach, beforeEach, expect, it } from '@jest/globals';
import { type Lease, LockTimeoutError, type LockWarning } from '../../../lib';
import { InMemoryLockRegistry, type InMemoryLockRegistryOptions, InMemoryLocks } from '../../../lib/testing';
import { until } from '../../support/until';

let warnings: LockWarning[];
const registries: InMemoryLockRegistry[] = [];

beforeEach(() => {
  warnings = [];
});

afterEach(async () => {
  await Promise.all(registries.splice(0).map((registry) => registry.close({ timeout: 0 })));
});

function create(options: InMemoryLockRegistryOptions = {}): InMemoryLockRegistry {
  const registry = new InMemoryLockRegistry({
    warnAfter: 50,
    onWarning: (warning) => warnings.push(warning),
    ...options,
  });
  registries.push(registry);
  return registry;
}

/** Both tasks have their own lock before they ask for the other's. */
async function crosswise(first: InMemoryLockRegistry, second: InMemoryLockRegistry, waitTime = 400) {
  let inside = 0;
  const task = (own: InMemoryLockRegistry, key: string, other: InMemoryLockRegistry, wanted: string) =>
    own.run(key, async () => {
      inside++;
      await until(() => inside === 2);
      await other.run(wanted, () => undefined, { waitTime });
    });
  const tasks = [task(first, 'a', second, 'b'), task(second, 'b', first, 'a')];
  // One of them goes on when the time of the other is over.
  const results = await Promise.allSettled(tasks);
  return results.flatMap((result) => (result.status === 'rejected' ? [result.reason as Error] : []));
}

it.each([
  ['one registry', () => [create()]],
  ['two registries', () => [create({ registryKey: 'one' }), create({ registryKey: 'two' })]],
])(
  'Tasks of one process that wait for each other are told the circle, in the warning and in the error: of %s',
  async (_, of) => {
    const [first, second = first] = of() as [InMemoryLockRegistry, InMemoryLockRegistry?];
    const errors = await crosswise(first, second);
    expect(warnings.map(({ message }) => message).join('\n')).toContain(
      'Callers of this process wait for each other, which is a deadlock: one holds "a" and waits for "b", one holds "b" and waits for "a"',
    );
    const error = errors.find(({ message }) => message.includes('deadlock'));
    expect(error).toBeInstanceOf(LockTimeoutError);
    expect(error?.message).toMatch(/one holds "(a|b)" and waits for "(a|b)", one holds/);
  },
);

it('Callers that wait for a busy lock, or for one after the other, are told of no deadlock', async () => {
  const warnAfter = 60;
  const registry = create({ warnAfter });
  const hot = Array.from({ length: 20 }, () =>
    registry.run('hot', () => new Promise((resolve) => setTimeout(resolve, 10))),
  );
  const chain = registry.run('a', () => registry.run('b', () => registry.run('hot', () => undefined)));
  await Promise.all([...hot, chain]);
  expect(warnings.length).toBeGreaterThan(0);
  // On a busy machine a holder may be inside for longer than others have waited.
  const isBusy = ({ holder }: LockWarning) => holder !== undefined && (holder.heldFor ?? 0) < warnAfter;
  expect(warnings.filter(isBusy).filter(({ message }) => message.includes('deadlock'))).toEqual([]);
});

it('A call that waited for its own caller says so: after lock(), and inside a run of another registry', async () => {
  const locks = new InMemoryLocks();
  const [registry, other] = [create({ locks }), create({ locks })];
  const lease = await registry.obtain('key').lock();
  await expect(registry.obtain('key').lock({ waitTime: 30 })).rejects.toThrow(
    'This process has held it all the time: if the caller is the holder, it has waited for itself, since only `run` is re-entrant',
  );
  await lease.unlock();
  await registry.run('key', async () => {
    await expect(other.obtain('key').lock({ waitTime: 30 })).rejects.toThrow(
      'The caller is inside a `run` that holds it: it has waited for itself',
    );
  });
});

it('A caller that waits for a lock of another process, and holds locks meanwhile, is told what would be a deadlock', async () => {
  const locks = new InMemoryLocks();
  const [registry, other] = [create({ locks }), create({ locks, name: 'web-8' })];
  const lease = await other.obtain('theirs').lock();
  await registry.run('ours', () => registry.run('theirs', () => undefined, { waitTime: 300 })).catch(() => undefined);
  expect(warnings[0]?.message).toMatch(
    /web-8 holds it .*\. The caller is inside a `run` that holds "ours": if web-8 waits for that, this is a deadlock$/,
  );
  await lease.unlock();
});

it('A caller whose lock the other holder waits for is told the circle, and of permits only where one has all', async () => {
  const locks = new InMemoryLocks();
  const [registry, other] = [create({ locks }), create({ locks, name: 'web-8' })];
  const error = async (permits: number) => {
    const [theirs, wanted] = [other, registry].map((one) => one.semaphore(`theirs ${permits}`, { permits }));
    const leases = [await theirs?.lock(), permits > 1 ? await theirs?.lock() : undefined];
    const key = `ours ${permits}`;
    let waiting: Promise<unknown> | undefined;
    const told = registry.run(key, async () => {
      waiting = other.obtain(key).lock();
      await until(async () => (await registry.obtain(key).inspect()).waiting === 1);
      await wanted?.lock({ waitTime: 30 });
    });
    const { message } = await told.then(
      () => new Error('No error'),
      (reason: Error) => reason,
    );
    await waiting;
    await Promise.all(leases.map((lease) => lease?.unlock()));
    return message;
  };
  expect(await error(1)).toMatch(
    /\. The caller is inside a `run` that holds "ours 1", and web-8 holds "theirs 1" and waits for "ours 1": this is a deadlock, unless two tasks of web-8 do that$/,
  );
  expect(await error(2)).toMatch(/^Lock "theirs 2" was not free within 30 ms: web-8.* unless it is renewed$/);
});

it('A caller that does not wait is told of no circle with another process, and Redis is not asked about one', async () => {
  const locks = new InMemoryLocks();
  const [registry, other] = [create({ locks }), create({ locks, name: 'web-8' })];
  const lease = await other.obtain('theirs').lock();
  let waiting: Promise<Lease> | undefined;
  await registry.run('ours', async () => {
    waiting = other.obtain('ours').lock();
    await until(async () => (await registry.obtain('ours').inspect()).waiting === 1);
    const error = registry.obtain('theirs').lock({ waitTime: 0 });
    await expect(error).rejects.toThrow(/^Lock "theirs" was not free within 0 ms: web-8.* unless it is renewed$/);
  });
  await (await waiting)?.unlock();
  await lease.unlock();
});
