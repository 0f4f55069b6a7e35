import { expect, it, jest } from '@jest/globals';
import { RedisLockRegistry } from '../../lib';
import { clock } from '../../lib/internal/clock';
import { FakeClock } from '../support/fake-clock';
import { granted, lateReply, mockRedis, refused } from '../support/mock-redis';
import { createRegistry } from '../support/test-registry';

/** A client whose commands are answered by hand. `hasEpoch`: it says that it has one connection. */
function answeredByHand(hasEpoch: boolean) {
  const unanswered: { readonly name: string; resolve(reply: unknown): void }[] = [];
  const client = Object.assign(mockRedis(), hasEpoch ? { socketEpoch: 1 } : {});
  client.evalSha.mockImplementation(
    (_, options) => new Promise((resolve) => unanswered.push({ name: options?.keys?.[0] ?? '', resolve })),
  );
  /** Answers the first command about the lock. */
  const answer = (key: string, reply: unknown): void => {
    const at = unanswered.findIndex(({ name }) => name === `late:${key}`);
    unanswered.splice(at, 1)[0]?.resolve(reply);
  };
  return { client, answer };
}

const time = FakeClock.install();

const start = (hasEpoch = true) => {
  const redis = answeredByHand(hasEpoch);
  const options = { registryKey: 'late', commandTimeout: 6_000, handOver: 10_000 };
  const registry = new RedisLockRegistry(redis.client, options);
  return { ...redis, registry };
};

it.each([
  ['one connection', true],
  ['several connections', false],
])(
  'A grant of a server that has been silent is requested once more, though its attempt was sent just before the server woke up: %s',
  async (_, hasEpoch) => {
    const { registry, answer } = start(hasEpoch);
    const first = registry.obtain('first').tryLock();
    await time.advance(3_700);
    const second = registry.obtain('second').tryLock();
    await time.advance(300);
    // It wakes up, and does not know yet that it was replaced. By the second answers it does.
    for (const reply of [granted, refused(1_000)]) {
      for (const key of ['first', 'second']) answer(key, reply);
      await time.advance(200);
    }
    expect([await first, await second]).toEqual([null, null]);
  },
);

it('A grant of a server that has been silent is requested once more, if it was sent in the moment in which the server learns that it was replaced', async () => {
  const { registry, answer } = start();
  const first = registry.obtain('first').tryLock();
  await time.advance(1_000);
  answer('first', refused(1_000));
  await first;
  await time.advance(50);
  const second = registry.obtain('second').tryLock();
  await time.advance(1);
  answer('second', granted);
  await time.advance(200);
  answer('second', refused(1_000));
  expect(await second).toBeNull();
  const third = registry.obtain('third').tryLock();
  await time.advance(1);
  answer('third', granted);
  expect(await third).not.toBeNull();
});

it('A grant of a server that has been silent is requested once more after each silence, and at the most three times', async () => {
  const { registry, client, answer } = start();
  const lock = registry.obtain('key').lock({ waitTime: 60_000 });
  for (let asked = 1; asked <= 4; asked++) {
    await time.advance(1_000);
    expect(client.evalSha).toHaveBeenCalledTimes(asked);
    answer('key', granted);
    await time.advance(200);
  }
  expect(client.evalSha).toHaveBeenCalledTimes(4);
  expect((await lock).remaining).toBeGreaterThan(0);
  await registry.close({ timeout: 0 });
});

it.each([650, 590, 581])(
  'A grant of a server that has been silent is given back where no time is left to request it once more: after %i of 700 ms (P1, P2)',
  async (silentFor) => {
    const { registry, client } = start();
    client.evalSha.mockImplementation(
      () => new Promise((resolve) => void clock.setTimeout(() => resolve(granted), client.sent === 1 ? silentFor : 1)),
    );
    const end = await time.settled(registry.obtain('key').lock({ waitTime: 700 }));
    expect(end).toMatchObject({ after: silentFor, error: { name: 'CannotAcquireLockError' } });
    expect(String(end?.error)).toContain('Redis granted it after a silence');
    await time.advance(1_000);
    expect(client.calls.at(-1)?.arguments).toContain('UNLINK');
  },
);

it('A grant of a server that has been silent is requested once more where there is just time for it (P1)', async () => {
  const { registry, client } = start();
  client.evalSha.mockImplementation(
    () => new Promise((resolve) => void clock.setTimeout(() => resolve(granted), client.sent === 1 ? 570 : 1)),
  );
  const end = await time.settled(registry.obtain('key').lock({ waitTime: 700 }));
  expect(end).toMatchObject({ after: 691, value: { key: 'key' } });
});

it('A grant of a server that has been silent is given back where its caller leaves before it was requested once more', async () => {
  const { registry, client, answer } = start();
  const stop = new AbortController();
  const call = time.settled(registry.obtain('key').lock({ signal: stop.signal }));
  await time.advance(1_000);
  answer('key', granted);
  await time.advance(50);
  stop.abort('left');
  expect(await call).toMatchObject({ error: 'left' });
  await time.advance(1_000);
  expect(client.calls.at(-1)?.arguments).toContain('UNLINK');
});

it.each(['confirms it', 'has renewed it'])(
  'A caller enters no hold that a server %s after a silence, as that may have been replaced: it asks for the lock twice',
  async (how) => {
    const { registry, client } = start();
    let delay = 1;
    client.evalSha.mockImplementation(
      () => new Promise((resolve) => void clock.setTimeout(() => resolve(granted), delay)),
    );
    const acquiring = registry.obtain('key').lock();
    await time.advance(1);
    const lease = await acquiring;
    const next = time.settled(registry.obtain('key').lock(), 2_000);
    await time.advance(100);
    delay = 600;
    const silent = how === 'confirms it' ? registry.obtain('other').tryLock() : lease.renew();
    await time.advance(600);
    delay = 1;
    void lease.unlock();
    expect(await next).toMatchObject({ after: 834 });
    await silent;
    await registry.close({ timeout: 0 });
  },
);

it('A script that stopped half-way since its slot moves is run again under the same owner value, which it may have written', async () => {
  const { client, registry } = start();
  const moves = 'ERR Script attempted to access a non local key in a cluster node script: 68f, on @user_script:45.';
  client.evalSha.mockRejectedValueOnce(new Error(moves)).mockResolvedValueOnce(granted);
  const locking = registry.obtain('key').lock();
  await time.advance(1_000);
  await locking;
  const [first, second] = client.calls.map((options) => options?.arguments?.[0]);
  expect(first).toBeDefined();
  expect(second).toBe(first);
});

it.each([1_000, 740, 725])(
  'A grant by a message after a silence is requested once more, with time for the answer, also at the end of a wait of %d ms (P1)',
  async (waitTime) => {
    const client = Object.assign(mockRedis(), {
      subscribe: jest.fn(async (_channel: string, _deliver: (message: string) => void) => undefined),
      unsubscribe: async () => undefined,
    });
    const { registry } = createRegistry(client, { lockType: 'fair' });
    const refusal = lateReply();
    client.evalSha.mockReturnValueOnce(refusal.promise).mockResolvedValue(1);
    const call = registry.obtain('key').lock({ waitTime });
    await time.advance(600);
    refusal.resolve([20_000, '7', '', '', 'another:1']);
    await time.advance(1);
    client.subscribe.mock.calls[0]?.[1](`grant ${client.calls[0]?.arguments?.[0]}@1 1000 `);
    await time.advance(1);
    const { length } = client.calls;
    client.evalSha.mockImplementation(
      () => new Promise((resolve) => void clock.setTimeout(() => resolve(granted), 45)),
    );
    await time.advance(200);
    expect(client.calls.slice(length).map((one) => one?.arguments?.[0])).toEqual([client.calls[0]?.arguments?.[0]]);
    (await call).assertHeld();
  },
);

it('A grant by a message is requested once more where its renewal was sent to a server that may not know that it was replaced, however late the answer is read', async () => {
  const client = Object.assign(mockRedis(), {
    subscribe: jest.fn(async (_channel: string, _deliver: (message: string) => void) => undefined),
    unsubscribe: async () => undefined,
  });
  const { registry } = createRegistry(client, { lockType: 'fair' });
  const refusal = lateReply();
  const renewal = lateReply();
  client.evalSha.mockReturnValueOnce(refusal.promise).mockResolvedValue([20_000, '7', '', '', 'another:1']);
  const call = registry.obtain('key').lock({ waitTime: 2_000 });
  await time.advance(600);
  refusal.resolve([20_000, '7', '', '', 'another:1']);
  await time.advance(1);
  const ticket = client.calls[0]?.arguments?.[0];
  client.eval.mockReturnValueOnce(renewal.promise);
  client.subscribe.mock.calls[0]?.[1](`grant ${ticket}@1 1000 `);
  await time.advance(1);
  expect(client.eval).toHaveBeenCalledTimes(1);
  // The event loop is blocked meanwhile, for longer than the server needs to learn of it.
  time.now += 200;
  time.wallNow += 200;
  renewal.resolve(1);
  const attempts = () => client.calls.filter((one) => one?.arguments?.[1] === '60000').length;
  expect([await time.settled(call, 3_000), attempts()]).toMatchObject([{ error: { name: 'LockTimeoutError' } }, 2]);
});
