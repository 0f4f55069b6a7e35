import { afterEach, beforeEach, expect, it } from '@jest/globals';
import { type LockWarning, RedisLockRegistry } from '../../lib';
import { describePrivate, PrivateRedis } from '../support/private-redis';
import type { TestClient } from '../support/redis';
import { until } from '../support/until';
import { KEY, REGISTRY_KEY } from './contention';
import { codeSpans, tableBelow } from './pages';

const SHARED = 'semaphores, read/write locks';

const [[, rules = '', withFencing = ''] = []] = tableBelow('docs/operations.md', 'Semaphores and read/write locks');
const RULES = [rules, withFencing].flatMap((cell) => (codeSpans(cell)[0] ?? '').split(' '));

const KEYS = tableBelow('docs/operations.md', 'Keys and channels')
  .filter(([types = '']) => types.startsWith(SHARED) || types.startsWith('read/write'))
  .map(([, name = '', kind = '']) => ({ name: codeSpans(name)[0] as string, kind }));

const LIMIT = { within: 10_000 };

describePrivate('For semaphores and read/write locks, docs/operations.md', () => {
  const redis = PrivateRedis.install();
  const open: { readonly registry: RedisLockRegistry; readonly client: TestClient }[] = [];
  const warnings: LockWarning[] = [];

  beforeEach(async () => {
    await redis.admin.flushAll();
    await redis.admin.scriptFlush(); // unknown scripts are sent by EVAL
    await redis.admin.sendCommand(['ACL', 'LOG', 'RESET']);
    await redis.admin.sendCommand(['CONFIG', 'RESETSTAT']);
  });

  afterEach(async () => {
    await Promise.all(open.map(({ registry }) => registry.close({ timeout: 0 })));
    for (const { client } of open.splice(0)) client.destroy();
  });

  async function registry(user: { username?: string; password?: string } = {}): Promise<RedisLockRegistry> {
    const client = await redis.connect(user);
    const onWarning = (warning: LockWarning) => void warnings.push(warning);
    const made = new RedisLockRegistry(client, { registryKey: REGISTRY_KEY, fencing: true, onWarning });
    open.push({ registry: made, client });
    return made;
  }

  const queued = (tickets: number) =>
    until(async () => {
      const fields = await redis.admin.hKeys(`{${REGISTRY_KEY}:${KEY}}:waiters`);
      return fields.filter((field) => field !== 'permits').length === tickets;
    }, LIMIT);

  const subscribed = () => until(async () => (await redis.admin.pubSubChannels('*')).length > 0, LIMIT);

  async function callsOf(rule: string): Promise<number> {
    const stats = await redis.admin.info('commandstats');
    return Number(new RegExp(`^cmdstat_${rule.slice(1)}:calls=(\\d+)`, 'm').exec(stats)?.[1] ?? 0);
  }

  it('has rules that let a user do everything, and nothing that is not needed', async () => {
    const all = ['on', '>secret', 'resetkeys', 'resetchannels', '-@all', '+hello', ...RULES];
    await redis.admin.sendCommand(['ACL', 'SETUSER', 'shared', ...all]);
    const user = { username: 'shared', password: 'secret' };
    // Each is a process of its own: callers of one process pass a lock on without a queue in Redis.
    const [one, other, third] = [await registry(user), await registry(user), await registry(user)];
    for (const lockOf of [
      (of: RedisLockRegistry) => of.semaphore(KEY, { permits: 1 }),
      (of: RedisLockRegistry) => of.readWrite(KEY).write,
    ]) {
      const held = await lockOf(one).lock();
      await held.renew(90_000);
      const leaving = new AbortController();
      const left = lockOf(third)
        .lock({ signal: leaving.signal })
        .catch(() => undefined);
      await queued(1);
      const waiting = lockOf(other).run(() => undefined);
      await queued(2);
      leaving.abort(new Error('It leaves'));
      await left;
      await held.unlock();
      await waiting;
      const lost = await lockOf(one).lock({ ttl: 20 });
      await expect(until(() => lost.remaining === 0).then(() => lost.unlock())).rejects.toThrow();
      await (await lockOf(other).lock()).unlock();
    }
    // A subscription outlives its last waiter for a moment.
    await until(async () => (await redis.admin.pubSubChannels('*')).length === 0, LIMIT);
    expect(warnings).toEqual([]);
    const denied = (await redis.admin.aclLog()).filter(({ object }) => !object.startsWith('client'));
    expect(denied.map(({ reason, object }) => `${reason} ${object}`)).toEqual([]);
    const unused = [];
    for (const rule of RULES) if (rule.startsWith('+') && (await callsOf(rule)) === 0) unused.push(rule);
    expect(unused).toEqual([]);
  });

  it('has every key and channel, and no other', async () => {
    const [one, other] = [await registry(), await registry()];
    const held = await one.readWrite(KEY).write.lock();
    const waiting = other.readWrite(KEY).read.run(() => undefined);
    await queued(1);
    await subscribed();
    const kinds: Record<string, string> = { zset: 'sorted set' };
    const found = [];
    for (const name of await redis.admin.keys('*')) {
      const type = await redis.admin.type(name);
      found.push({
        name,
        kind: `${kinds[type] ?? type}${(await redis.admin.pTTL(name)) < 0 ? ', no' : ' with'} expiry`,
      });
    }
    for (const name of await redis.admin.pubSubChannels('*')) found.push({ name, kind: 'channel' });
    await held.unlock();
    await waiting;
    const byName = (a: { name: string }, b: { name: string }) => a.name.localeCompare(b.name);
    expect(found.sort(byName)).toEqual([...KEYS].sort(byName));
  });
});
