import { setImmediate as nextTurn } from 'node:timers/promises';
import { Mutex } from 'async-mutex';
import type { Address, Candidate, Locks, Release } from './candidate';
import { ioRedis, nodeRedis } from './clients';

/** Minimal lock scripts: compare the owner, then act. */
const SCRIPTS = {
  acquire: `return redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2])`,
  release: `if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0`,
  acquireAll: `
if redis.call('EXISTS', unpack(KEYS)) > 0 then return 0 end
for _, key in ipairs(KEYS) do redis.call('SET', key, ARGV[1], 'PX', ARGV[2]) end
return 1`,
  releaseAll: `
for _, key in ipairs(KEYS) do if redis.call('GET', key) == ARGV[1] then redis.call('DEL', key) end end`,
  releaseAndPublish: `
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
redis.call('DEL', KEYS[1])
return redis.call('PUBLISH', KEYS[1], '')`,
  handOver: `
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
return redis.call('SET', KEYS[1], ARGV[2], 'PX', ARGV[3])`,
  takeOrQueue: `
if redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) then return 1 end
redis.call('RPUSH', KEYS[2], ARGV[1])
return 0`,
  // The next owner is in the reply if it is of the same process, else it is published to its process.
  handOverToFirst: `
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return '' end
local next = redis.call('LPOP', KEYS[2])
if not next then
  redis.call('DEL', KEYS[1])
  return ''
end
redis.call('SET', KEYS[1], next, 'PX', ARGV[2])
local process = string.match(next, '^%d+')
if process == string.match(ARGV[1], '^%d+') then return next end
redis.call('PUBLISH', 'token:' .. process, next)
return ''`,
  // Those that wait for several keys, in the order of their calls: the owner, then its keys.
  takeAllOrQueue: `
local queue, keys = KEYS[1], { unpack(KEYS, 2) }
if redis.call('EXISTS', unpack(keys)) > 0 then
  redis.call('RPUSH', queue, ARGV[1] .. ' ' .. table.concat(keys, ' '))
  return 0
end
for _, key in ipairs(keys) do redis.call('SET', key, ARGV[1], 'PX', ARGV[2]) end
return 1`,
  // To each one whose keys are all free now: those of the same process are in the reply, the others are published.
  handOverToAllThatFit: `
local queue, own = KEYS[1], {}
for i = 2, #KEYS do if redis.call('GET', KEYS[i]) == ARGV[1] then redis.call('DEL', KEYS[i]) end end
local process = string.match(ARGV[1], '^%d+')
for _, entry in ipairs(redis.call('LRANGE', queue, 0, -1)) do
  local owner, rest = string.match(entry, '^(%S+) (.*)$')
  local keys = {}
  for key in string.gmatch(rest, '%S+') do keys[#keys + 1] = key end
  if redis.call('EXISTS', unpack(keys)) == 0 then
    for _, key in ipairs(keys) do redis.call('SET', key, owner, 'PX', ARGV[2]) end
    redis.call('LREM', queue, 1, entry)
    local its = string.match(owner, '^%d+')
    if its == process then own[#own + 1] = owner else redis.call('PUBLISH', 'several:' .. its, owner) end
  end
end
return own`,
  // By the time of the call: its score is the time of the server, less the caller's age in microseconds.
  takeOrQueueByCall: `
if redis.call('EXISTS', KEYS[2]) == 0 and redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) then return 1 end
local time = redis.call('TIME')
redis.call('ZADD', KEYS[2], time[1] * 1000000 + time[2] - ARGV[3], ARGV[1])
return 0`,
  // To the earliest caller: the next one of the same process, or the first in the queue, where that one is next.
  handOverByCall: `
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return '' end
local ttl, next = ARGV[2], ARGV[4]
if redis.call('EXISTS', KEYS[2]) == 1 then
  if next ~= '' then
    local time = redis.call('TIME')
    redis.call('ZADD', KEYS[2], time[1] * 1000000 + time[2] - ARGV[5], next)
  end
  local first = redis.call('ZPOPMIN', KEYS[2])[1]
  if first ~= next then
    redis.call('SET', KEYS[1], first, 'PX', ARGV[3])
    redis.call('PUBLISH', 'fair:' .. string.match(first, '^%d+'), first)
    return ''
  end
end
if next == '' then
  redis.call('DEL', KEYS[1])
else
  redis.call('SET', KEYS[1], next, 'PX', ttl)
end
return next`,
  // A grant that ended unclaimed is claimed late: nobody else asks for the lock while there is a queue.
  renewGrant: `
local holder = redis.call('GET', KEYS[1])
if not holder or holder == ARGV[1] then redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2]) end`,
  renew: `
local held = 0
for i, key in ipairs(KEYS) do
  if redis.call('GET', key) == ARGV[i + 1] then held = held + redis.call('PEXPIRE', key, ARGV[1]) end
end
return held`,
};

type ScriptName = keyof typeof SCRIPTS;

/** Without command timeouts, which cost several times as much as the command itself. Each script is one EVALSHA. */
async function connect(address: Address) {
  const plain = await nodeRedis(address);
  const client = plain.withCommandOptions({ timeout: 0 });
  const shas = {} as Record<ScriptName, string>;
  for (const name of Object.keys(SCRIPTS) as ScriptName[]) shas[name] = await client.scriptLoad(SCRIPTS[name]);
  const run = (name: ScriptName, keys: string[], ...args: string[]) =>
    client.evalSha(shas[name], { keys, arguments: args });
  return { client, run, subscriber: () => plain.duplicate().connect() };
}

type Redis = Awaited<ReturnType<typeof connect>>;

/** A floor on node-redis. */
function floor(
  candidate: Pick<Candidate, 'id' | 'title' | 'isVariant'>,
  locksOf: (redis: Redis, ttl: number) => Locks | Promise<Locks>,
): Candidate {
  return { packages: ['redis'], open: async ({ address, ttl }) => locksOf(await connect(address), ttl), ...candidate };
}

let sequence = 0;
const nextOwner = () => `${process.pid}:${++sequence}`;

/** Acquires at the first attempt: one command for each acquisition and each release. */
function byTwoCommands<Key>(
  take: (key: Key, owner: string) => Promise<unknown>,
  end: (key: Key, owner: string) => unknown,
) {
  return async (key: Key, owner = nextOwner()): Promise<Release> => {
    await take(key, owner);
    return () => end(key, owner);
  };
}

const setOptions = (ttl: number) => ({ condition: 'NX', expiration: { type: 'PX', value: ttl } }) as const;

const KEYS_PER_RENEWAL = 100;

/** Uncontended, without a queue: SET NX PX, and a script that deletes the key if it is ours. */
function plainLocks({ client, run }: Redis, ttl: number): Locks {
  const held = new Map<string, string>();
  const renew = async () => {
    const entries = [...held];
    for (let i = 0; i < entries.length; i += KEYS_PER_RENEWAL) {
      const batch = entries.slice(i, i + KEYS_PER_RENEWAL);
      const keys = batch.map(([key]) => key);
      await run('renew', keys, String(ttl), ...batch.map(([, owner]) => owner));
    }
  };
  const acquire = byTwoCommands<string>(
    (key, owner) => client.set(key, owner, setOptions(ttl)),
    (key, owner) => run('release', [key], owner),
  );
  const keep = (key: string) => {
    if (held.size === 0) setInterval(() => void renew(), ttl / 3);
    held.set(key, nextOwner());
    return acquire(key, held.get(key));
  };
  return { acquire, keep };
}

/** The same on ioredis. */
const floorIoredis: Candidate = {
  id: 'floor-ioredis',
  title: 'floor: SET NX PX + EVALSHA (ioredis)',
  packages: ['ioredis'],
  floor: 'floor-ioredis',
  async open({ address, ttl }) {
    const client = await ioRedis(address);
    const sha = String(await client.script('LOAD', SCRIPTS.release));
    const acquire = byTwoCommands<string>(
      (key, owner) => client.set(key, owner, 'PX', ttl, 'NX'),
      (key, owner) => client.evalsha(sha, 1, key, owner),
    );
    return { acquire };
  },
};

/** Acquires by script, as a library must to recognise its own earlier attempt. */
function scriptLocks({ run }: Redis, ttl: number): Locks {
  const acquire = byTwoCommands<string>(
    (key, owner) => run('acquire', [key], owner, String(ttl)),
    (key, owner) => run('release', [key], owner),
  );
  const acquireAll = byTwoCommands<readonly string[]>(
    (keys, owner) => run('acquireAll', [...keys], owner, String(ttl)),
    (keys, owner) => run('releaseAll', [...keys], owner),
  );
  return { acquire, acquireAll };
}

/** ms; the default of our option `replicaTimeout`. */
const REPLICA_TIMEOUT = 100;

/** Acquires by script, and waits until one replica has it, on the same connection. */
function waitLocks({ client, run }: Redis, ttl: number): Locks {
  const acquire = byTwoCommands<string>(
    // Both are written in one tick: one round trip, and the time of the replica.
    (key, owner) => Promise.all([run('acquire', [key], owner, String(ttl)), client.wait(1, REPLICA_TIMEOUT)]),
    (key, owner) => run('release', [key], owner),
  );
  return { acquire };
}

/** Minimal FIFO queues for the callers of one process, one queue for each key. */
class LocalQueues<Value> {
  readonly #waiters = new Map<string, ((value: Value | undefined) => void)[]>();

  /** Resolves at once with undefined, or after `leave` of the caller before, with the value that it hands over. */
  async enter(key: string): Promise<Value | undefined> {
    const waiters = this.#waiters.get(key);
    if (waiters !== undefined) return new Promise((resolve) => waiters.push(resolve));
    this.#waiters.set(key, []);
    return undefined;
  }

  hasWaiters(key: string): boolean {
    return (this.#waiters.get(key)?.length ?? 0) > 0;
  }

  leave(key: string, value?: Value): void {
    const next = this.#waiters.get(key)?.shift();
    if (next === undefined) this.#waiters.delete(key);
    else next(value);
  }
}

/** Hand-over between the callers of one process: one script makes the next caller the owner. */
function handOverLocks({ run }: Redis, ttl: number): Locks {
  const queues = new LocalQueues<string>();
  return {
    async acquire(key) {
      const handed = await queues.enter(key);
      const mine = handed ?? nextOwner();
      if (handed === undefined) await run('acquire', [key], mine, String(ttl));
      return async () => {
        const next = queues.hasWaiters(key) ? nextOwner() : undefined;
        if (next === undefined) await run('release', [key], mine);
        else await run('handOver', [key], mine, next, String(ttl));
        queues.leave(key, next);
      };
    },
  };
}

/** ms after which the event loop gets a turn, as in our library: the mutex alone would never leave it one. */
const LOOP_TURN = 5;

/** What a hand-over within a process costs that asks nobody. */
const asyncMutex: Candidate = {
  id: 'async-mutex',
  title: 'floor: async-mutex, without Redis',
  packages: ['async-mutex'],
  async open() {
    const mutexes = new Map<string, Mutex>();
    let turnAt = performance.now();
    return {
      async acquire(key) {
        const mutex = mutexes.get(key) ?? new Mutex();
        mutexes.set(key, mutex);
        const release = await mutex.acquire();
        if (performance.now() - turnAt > LOOP_TURN) {
          await nextTurn();
          turnAt = performance.now();
        }
        return release;
      },
    };
  },
};

/**
 * Contended: a FIFO queue in each process; its first caller retries SET NX PX when a release is published. No deadline,
 * no fairness between processes, no poll that would make up for a lost message.
 */
async function fifoLocks({ client, run, subscriber }: Redis, ttl: number): Promise<Locks> {
  const queues = new LocalQueues<undefined>();
  const messages = await subscriber();
  const subscribed = new Map<string, Promise<void>>();
  const wake = new Map<string, () => void>();
  const take = (key: string, owner: string) => client.set(key, owner, setOptions(ttl));
  return {
    async acquire(key) {
      await queues.enter(key);
      const owner = nextOwner();
      if ((await take(key, owner)) === null) {
        const subscription = subscribed.get(key) ?? messages.subscribe(key, () => wake.get(key)?.());
        subscribed.set(key, subscription);
        await subscription;
        for (;;) {
          const released = new Promise<void>((resolve) => wake.set(key, resolve));
          if ((await take(key, owner)) !== null) break;
          await released;
        }
      }
      return async () => {
        await run('releaseAndPublish', [key], owner);
        queues.leave(key);
      };
    },
  };
}

/** The owners of this process that wait, each granted by a reply or by a message on the channel. */
async function grants(subscriber: Redis['subscriber'], channel: string) {
  const waiting = new Map<string, () => void>();
  const grant = (owner: string) => {
    waiting.get(owner)?.();
    waiting.delete(owner);
  };
  await (await subscriber()).subscribe(channel, grant);
  /** To be called before the request: the message may come before its reply. */
  const granted = (owner: string) => new Promise<void>((resolve) => waiting.set(owner, resolve));
  return { grant, granted };
}

/**
 * A token that is passed on in the order of requests, over all processes: two requests and at most one message for each
 * acquisition. A lost message or a dead process would stop it.
 */
async function tokenLocks({ run, subscriber }: Redis, ttl: number): Promise<Locks> {
  const { grant, granted } = await grants(subscriber, `token:${process.pid}`);
  return {
    async acquire(key) {
      const owner = nextOwner();
      const keys = [key, `${key}:queue`];
      const entered = granted(owner);
      if ((await run('takeOrQueue', keys, owner, String(ttl))) === 1) grant(owner);
      await entered;
      return async () => grant(String(await run('handOverToFirst', keys, owner, String(ttl))));
    },
  };
}

/**
 * Several keys, all or nothing, for the first that waits and fits, over all processes: two requests and at most one message
 * for each acquisition. Nobody is woken in vain, and who needs many keys may starve. As `tokenLocks` it is for good weather.
 */
async function severalLocks(redis: Redis, ttl: number): Promise<Locks> {
  const { run, subscriber } = redis;
  const { grant, granted } = await grants(subscriber, `several:${process.pid}`);
  return {
    ...scriptLocks(redis, ttl),
    async acquireAll(keys) {
      const owner = nextOwner();
      const all = ['several:queue', ...keys];
      const entered = granted(owner);
      if ((await run('takeAllOrQueue', all, owner, String(ttl))) === 1) grant(owner);
      await entered;
      return async () => {
        const own = await run('handOverToAllThatFit', all, owner, String(ttl));
        for (const one of own as unknown as string[]) grant(one);
      };
    },
  };
}

/** ms; as the default of our option `commandTimeout`. */
const COMMAND_TIMEOUT = 5_000;

/** ms; a grant that its process does not claim by a renewal ends. */
const CLAIM_WINDOW = '1000';

interface FairCaller {
  readonly calledAt: number;
  enter(owner: string): void;
}

/**
 * What the rules of `fair` cost at least, on the usual path: a queue in Redis in the order of calls over all processes,
 * where the first caller of each process has a position; a grant that ends unless it is claimed; a message to the
 * process that is granted, which claims it with a renewal and enters without waiting for the reply; a hand-over in the
 * reply where the next caller is of the same process; a deadline for each command. It has none of what the rules need
 * when something fails: no polls, no cleaning up, no later renewals, no loss, no aborts, no pauses for pollers.
 */
async function fairLocks({ run: send, subscriber }: Redis, ttl: number): Promise<Locks> {
  const withDeadline = deadlines();
  /** By key: the callers that wait, while the process has the lock or a position in its queue. */
  const waiting = new Map<string, FairCaller[]>();
  /** The keys of positions in Redis. */
  const positions = new Map<string, string>();

  const age = ({ calledAt }: FairCaller) => String(Math.round(1000 * (performance.now() - calledAt)));
  const run = (name: ScriptName, key: string, ...args: string[]) =>
    withDeadline(send(name, [key, `${key}:queue`], ...args));
  const enter = (owner: string) => {
    const key = positions.get(owner) as string;
    positions.delete(owner);
    waiting.get(key)?.shift()?.enter(owner);
  };
  const ask = async (key: string, first: FairCaller) => {
    const owner = nextOwner();
    positions.set(owner, key); // before the request: the message may come before its reply
    if ((await run('takeOrQueueByCall', key, owner, String(ttl), age(first))) === 1) enter(owner);
  };
  const release = async (key: string, owner: string) => {
    const callers = waiting.get(key) as FairCaller[];
    const [next] = callers;
    const nextsOwner = next === undefined ? '' : nextOwner();
    if (next !== undefined) positions.set(nextsOwner, key);
    const ageOfNext = next === undefined ? '' : age(next);
    const granted = await run('handOverByCall', key, owner, String(ttl), CLAIM_WINDOW, nextsOwner, ageOfNext);
    if (granted !== '') enter(nextsOwner);
    else if (next === undefined && callers[0] !== undefined) await ask(key, callers[0]);
    else if (next === undefined) waiting.delete(key);
  };
  await (await subscriber()).subscribe(`fair:${process.pid}`, async (owner) => {
    void run('renewGrant', positions.get(owner) as string, owner, String(ttl));
    await nextTurn();
    enter(owner);
  });
  return {
    acquire: (key) =>
      new Promise<Release>((resolve) => {
        const enterWith = (owner: string) => resolve(() => release(key, owner));
        const caller: FairCaller = { calledAt: performance.now(), enter: enterWith };
        if (waiting.get(key)?.push(caller) !== undefined) return;
        waiting.set(key, [caller]);
        void ask(key, caller);
      }),
  };
}

/** Deadlines of commands, with one timer. All have the same time, so they end in the order in which they began. */
function deadlines(): <T>(command: Promise<T>) => Promise<T> {
  const open = new Set<{ readonly endsAt: number; end(): void }>();
  const endDue = () => {
    for (const deadline of open) {
      if (deadline.endsAt > performance.now()) return;
      open.delete(deadline);
      deadline.end();
    }
  };
  setInterval(endDue, COMMAND_TIMEOUT / 10).unref();
  return (command) =>
    new Promise((resolve, reject) => {
      const end = () => reject(new Error('Redis did not answer'));
      const deadline = { endsAt: performance.now() + COMMAND_TIMEOUT, end };
      open.add(deadline);
      command.then((reply) => {
        open.delete(deadline);
        resolve(reply);
      }, reject);
    });
}

export const floors: readonly Candidate[] = [
  floor({ id: 'floor', title: 'floor: SET NX PX + EVALSHA' }, plainLocks),
  floorIoredis,
  floor({ id: 'floor-evalsha', title: 'floor: EVALSHA + EVALSHA' }, scriptLocks),
  floor({ id: 'floor-fifo', title: 'floor: FIFO, SET NX PX + EVALSHA, PUBLISH' }, fifoLocks),
  floor({ id: 'floor-hand-over', title: 'floor: FIFO, one hand-over script' }, handOverLocks),
  asyncMutex,
  floor({ id: 'floor-token', title: 'floor: FIFO over all processes, a token' }, tokenLocks),
  floor({ id: 'floor-several', title: 'floor: the first that waits and fits, a token' }, severalLocks),
  floor({ id: 'floor-fair', title: 'floor: the rules of fair', isVariant: true }, fairLocks),
  floor({ id: 'floor-wait', title: 'floor: EVALSHA + WAIT 1, EVALSHA' }, waitLocks),
];
