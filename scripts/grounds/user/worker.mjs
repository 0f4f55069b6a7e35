// A process of a user, which does what it is asked for over stdin, one line of JSON each: { id, do, … }.
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { RedisLockRegistry } from 'redis-lock-registry';
import { open } from './clients.mjs';

const { client: name, url, lockType, expireAfter } = JSON.parse(process.env.GROUNDS);
const { client, send, end } = await open(name, url);
const registry = new RedisLockRegistry(client, { registryKey: 'grounds', lockType, expireAfter });
const stopping = new AbortController();
const leases = new Map();
const tell = (message) => console.log(JSON.stringify(message));

const acts = {
  /** One at a time in all processes: the sections that were not alone, and how many there were. */
  async sections({ key, times }) {
    let overlaps = 0;
    for (let i = 0; i < times; i++) {
      await registry.run(key, async () => {
        if (Number(await send('INCR', `${key}:inside`)) !== 1) overlaps++;
        const done = Number(await send('GET', `${key}:done`));
        await sleep(2);
        await send('SET', `${key}:done`, String(done + 1));
        await send('DECR', `${key}:inside`);
      });
    }
    return { overlaps, done: Number(await send('GET', `${key}:done`)) };
  },
  /** Holds it until `unlock`. */
  async hold({ key }) {
    leases.set(key, await registry.obtain(key).lock());
  },
  async unlock({ key }) {
    return leases.get(key).unlock().then(() => 'unlocked', (error) => error.name);
  },
  /** Holds it until the process is asked to end. */
  async work({ key }) {
    const began = new Promise((began) => {
      registry
        .run(key, ({ signal }) => {
          began();
          return sleep(60_000, undefined, { signal: AbortSignal.any([signal, stopping.signal]) }).catch(() => undefined);
        })
        .catch((error) => tell({ event: 'work', error: error.name }));
    });
    await began;
  },
  async run({ key, waitTime }) {
    const at = performance.now();
    await registry.run(key, () => undefined, { waitTime });
    return Math.round(performance.now() - at);
  },
  async tryLock({ key }) {
    const lease = await registry.obtain(key).tryLock();
    await lease?.unlock();
    return lease === null ? 'taken' : 'free';
  },
  /** Not every runtime has the syntax: there what it calls is called. */
  async using({ key }) {
    const within = await disposing(registry.obtain(key), () => acts.tryLock({ key: `${key}-other` }));
    return [within, await acts.tryLock({ key })];
  },
  async once({ key }) {
    const task = async () => {
      await sleep(50);
      return Number(await send('INCR', `${key}:ran`));
    };
    return registry.once(key, task, { keepFor: 20_000 });
  },
  reenter: ({ key }) => registry.run(key, () => registry.run(key, () => 'entered again')),
  async lead({ key }) {
    const led = new Promise((led) => {
      registry
        .lead(key, ({ signal }) => (led(), sleep(60_000, undefined, { signal })), { signal: stopping.signal })
        .catch(() => undefined);
    });
    await led;
  },
  /** The event loop stands still for longer than the lease lasts. */
  async block({ key, ms }) {
    const lease = await registry.obtain(key).lock();
    for (const until = performance.now() + ms; performance.now() < until; );
    const remaining = lease.remaining;
    let thrown = 'nothing';
    try {
      lease.assertHeld();
    } catch (error) {
      thrown = error.name;
    }
    await sleep(0);
    const unlocked = await lease.unlock().then(() => 'unlocked', (error) => error.name);
    return { remaining, thrown, aborted: lease.signal.aborted, unlocked };
  },
  /** A registry that is closed while it holds something: no call can report that. */
  async abandon({ key }) {
    const other = new RedisLockRegistry(client, { registryKey: 'grounds', lockType, expireAfter: 2_000 });
    await other.obtain(key).lock();
    await other.close({ timeout: 0 });
  },
  send: ({ words }) => send(...words),
};

async function disposing(lock, task) {
  let program;
  try {
    program = eval('async (lock, task) => { await using lease = await lock.lock(); return task(lease); }');
  } catch {
    program = async (lock, task) => {
      const lease = await lock.lock();
      try {
        return await task(lease);
      } finally {
        await lease[Symbol.asyncDispose]();
      }
    };
  }
  return program(lock, task);
}

const lines = createInterface({ input: process.stdin });
async function close() {
  stopping.abort();
  await registry.close({ timeout: 5_000 });
  end();
  lines.close();
  process.stdin.destroy(); // nothing else ends the process: what is left behind keeps it
}
process.once('SIGTERM', close);
lines.on('line', async (line) => {
  const { id, do: act, ...given } = JSON.parse(line);
  if (act === 'close') return close();
  try {
    tell({ id, result: (await acts[act](given)) ?? null });
  } catch (error) {
    tell({ id, error: `${error.name}: ${error.message}` });
  }
});
tell({ event: 'ready' });
