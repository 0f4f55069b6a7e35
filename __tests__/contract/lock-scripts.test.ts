import { beforeEach, expect, it } from '@jest/globals';
import { LISTENERS } from '../../lib/kinds/common/script-parts';
import { MARK } from '../../lib/kinds/common/wanted';
import { REDISSON_SCRIPTS } from '../../lib/kinds/redisson/kind';
import { SPRING_SCRIPTS } from '../../lib/kinds/spring/kind';
import { isRightRefused } from '../../lib/redis/failure';
import type { Script } from '../../lib/redis/script';
import { messagesOn } from '../support/messages';
import { describePrivate, PrivateRedis } from '../support/private-redis';
import { uniqueKey } from '../support/redis';
import { HAS_SHARDED_CHANNELS, MUTE } from '../support/since';
import { until } from '../support/until';

/** ms */
const MINUTE = 60_000;
const HOUR = 3_600_000;

const FORMATS = [
  { name: 'spring', scripts: SPRING_SCRIPTS, shards: false },
  { name: 'redisson', scripts: REDISSON_SCRIPTS, shards: true },
];

describePrivate.each(FORMATS)('The scripts of a $name lock', ({ name, scripts, shards }) => {
  const redis = PrivateRedis.install();
  let lock: string;
  let fence: string;
  let channel: string;
  /** The last arguments of what publishes. */
  let sent: readonly string[];

  const run = (script: Script, args: unknown[], { client = redis.admin, fenced = false } = {}) =>
    client.eval(script.source, { keys: fenced ? [lock, fence] : [lock], arguments: args.map(String) });
  const acquire = (owner: string, fenced = false) => run(scripts.ACQUIRE, [owner, MINUTE], { fenced });
  const release = (owner: string, client = redis.admin) => run(scripts.RELEASE, [owner, 'UNLINK', ...sent], { client });
  const life = () => redis.admin.pTTL(lock);
  /** What the listeners of the lock get; they are so many. */
  const listening = async (many = 1) => {
    const messages: string[] = [];
    for (let i = 0; i < many; i++) {
      const client = await redis.connect();
      const heard = (message: string) => void messages.push(message);
      await (sent[0] === 'SPUBLISH' ? client.sSubscribe(channel, heard) : client.subscribe(channel, heard));
    }
    return messages;
  };

  /** A user of these rights, who has all others. */
  const user = async (...rights: readonly string[]) => {
    const username = rights.join('');
    const all = ['on', '>x', '~*', '&*', '+@all', ...rights];
    await redis.admin.sendCommand(['ACL', 'SETUSER', username, ...all]);
    return redis.connect({ username, password: 'x' });
  };

  beforeEach(() => {
    lock = uniqueKey('scripts');
    fence = `{${lock}}:fence`;
    sent = shards ? [HAS_SHARDED_CHANNELS ? 'SPUBLISH' : 'PUBLISH', lock] : [lock];
    channel = shards ? lock : `${lock}:${lock}`;
  });

  it(`The scripts of a ${name} lock tell a next caller of a lock that is gone or stolen, and confirm or release it by its listeners`, async () => {
    await listening(2);
    const args = (listeners: number) => ['me:1', String(HOUR), '', String(listeners), 'us', 'UNLINK', ...sent];
    const mark = `{${lock}}:wanted`;
    const confirm = (listeners: number) =>
      redis.admin.eval(scripts.CONFIRM_OR_RELEASE.source, { keys: [lock, mark], arguments: args(listeners) });
    expect(await confirm(2)).toEqual([0, 0]);
    await acquire('thief:1');
    expect(await confirm(2)).toEqual([-1, 0]);
    await release('thief:1');
    await acquire('me:1');
    expect(await confirm(2)).toBe(1);
    expect(await life()).toBeGreaterThan(MINUTE);
    expect(await confirm(1)).toEqual([1, 2, 0]);
    expect(await life()).toBe(-2);
    // Others are found by their mark, too.
    await acquire('me:1');
    for (const own of ['us 0', 'us 100', 'nonsense']) {
      await redis.admin.set(mark, own);
      expect(await confirm(2)).toBe(1);
    }
    for (const headStart of [0, 150]) {
      await redis.admin.set(mark, `others ${headStart}`);
      expect(await confirm(2)).toEqual([1, 2, headStart]);
      await acquire('me:1');
    }
    await redis.admin.unlink(mark);
    await redis.admin.hSet(mark, 'others', '100');
    expect(await confirm(2)).toBe(1);
  });

  it(`The mark of a process that waits for a ${name} lock ends by itself, and does not replace that of one that no message reaches`, async () => {
    const mark = `{${lock}}:wanted`;
    const leave = (waiter: string, headStart: number, keptFor = MINUTE) =>
      redis.admin.eval(MARK.source, { keys: [mark], arguments: [waiter, String(headStart), String(keptFor)] });
    const marks: unknown[] = [];
    for (const [waiter, headStart] of [
      ['a', 0],
      ['b', 0],
      ['a', 100],
      ['b', 0],
      ['b', 20],
      ['a', 0],
      ['b', 0],
    ] as const) {
      await leave(waiter, headStart);
      marks.push(await redis.admin.get(mark));
    }
    expect(marks).toEqual(['a 0', 'b 0', 'a 100', 'a 100', 'b 20', 'b 20', 'b 0']);
    expect(await redis.admin.pTTL(mark)).toBeGreaterThan(0);
    await leave('b', 0, 1);
    await until(async () => (await redis.admin.exists(mark)) === 0);
  });

  it(`The scripts of a ${name} lock give it an expiry with tokens too, each token once, and that of a lost reply again`, async () => {
    const token = Number(await acquire('me:1', true));
    expect(await life()).toBeGreaterThan(0);
    expect(Number(await acquire('me:1', true))).toBe(token);
    if (name === 'spring') expect(await redis.admin.pTTL(fence)).toBeGreaterThan(HOUR);
    expect(await acquire('other:1', true)).toEqual([expect.any(Number), 'me:1']);
    const confirmed = await run(scripts.CONFIRM_OR_RELEASE, ['me:1', MINUTE, 300_000], { fenced: true });
    const [first = 0, count = 1] = String(confirmed).split(' ').map(Number);
    expect(first).toBeGreaterThan(token);
    // Java may have a counter of Redisson's, which never expires.
    if (name === 'redisson') expect(await redis.admin.pTTL(fence)).toBe(-1);
    else expect(await redis.admin.pTTL(fence)).toBeGreaterThan(HOUR);
    await release('me:1');
    expect(Number(await acquire('other:1', true))).toBeGreaterThan(first + count - 1);
    const shown = async () => (await run(scripts.inspection.inspect, ['', ''], { fenced: true })) as unknown[];
    expect(await shown()).toMatchObject({ 0: 'other:1', 2: await redis.admin.get(fence) });
    expect((await shown())[1]).toBeGreaterThan(MINUTE / 2);
    await release('other:1');
    expect((await shown()).slice(0, 3)).toEqual(['', 0, '']);
  });

  it(`The scripts of a ${name} lock neither shorten nor prolong for ever the life of one that is detached or kept`, async () => {
    await acquire('me:1');
    await redis.admin.pExpire(lock, HOUR);
    expect(await run(scripts.DETACH, ['me:1', 'text', MINUTE])).toBe(1);
    expect(await life()).toBeGreaterThan(2 * MINUTE);
    expect(await release('me:1')).toBe(-1);
    const messages = await listening();
    await run(scripts.KEEP, ['text', MINUTE, 2 * HOUR, HOUR, ...sent]);
    await until(() => messages.length > 0);
    expect(await release('text')).toBe(-1);
    expect(await life()).toBeGreaterThan(0);
    expect(await life()).toBeLessThanOrEqual(MINUTE);
  });

  it(`The scripts of a ${name} lock say how many hear of a release, and that a user may not publish`, async () => {
    const messages = await listening();
    await acquire('me:1');
    expect(await release('me:1')).toEqual([1, 1]);
    await until(() => messages.length === 1);
    await acquire('me:1');
    expect(await release('me:1', await user(...MUTE))).toEqual([1, LISTENERS.refused]);
    if (!shards) return;
    // As on a cluster before Redis 7.
    sent = ['SPUBLISH', lock];
    const heard = await messagesOn(redis.connect(), channel);
    await acquire('me:1');
    expect(await release('me:1', HAS_SHARDED_CHANNELS ? await user('-spublish') : redis.admin)).toEqual([
      1,
      LISTENERS.uncounted,
    ]);
    await until(() => heard.length === 1);
  });

  it(`The scripts of a ${name} lock take a key of another type for that of another owner, and no other error`, async () => {
    await redis.admin.lPush(lock, 'text');
    expect(await release('me:1')).toBe(-1);
    await redis.admin.del(lock);
    await acquire('me:1');
    const client = await user('-get', '-hexists');
    for (const refused of [release('me:1', client), run(scripts.RENEW, ['me:1', HOUR], { client })]) {
      const error = await refused.catch((failure: unknown) => failure);
      expect([error, isRightRefused(error)]).toEqual([error, true]);
    }
    expect(await release('me:1')).toBe(1);
  });
});
