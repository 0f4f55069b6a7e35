import { beforeEach, expect, it } from '@jest/globals';
import { ENTER, INSPECTION, RELEASE, RENEW } from '../../../lib/kinds/shared/scripts';
import type { LockScript } from '../../../lib/redis/script';
import { messagesOn } from '../../support/messages';
import { createRealClient, describeReal, type TestClient, uniqueKey } from '../../support/redis';
import { until } from '../../support/until';

/** ms */
const SECOND = 1_000;
const MINUTE = 60_000;
/** What lies further ahead is from before the clock of the server was set back. */
const PASSES = 950;

describeReal('The scripts of a shared lock', () => {
  let client: TestClient;
  let lock: string;
  let waiters: string;
  let messages: string[];

  beforeEach(async () => {
    client ??= await createRealClient();
    lock = uniqueKey('scripts');
    waiters = `{${lock}}:waiters`;
    messages = await messagesOn(createRealClient(), lock);
  });

  const run = async ({ source }: LockScript, ...args: (string | number)[]) =>
    (await client.eval(source, { keys: [lock, waiters], arguments: args.map(String) })) as (string | number)[];

  interface Asked {
    readonly permits?: number;
    /** ms since the number of permits was given, and whether this process gave it. */
    readonly givenAgo?: number;
    readonly isOwn?: boolean;
    readonly arrival?: number | '';
    readonly waited?: number;
    readonly keptFor?: number;
    /** ms for which its process passes a permit on. */
    readonly passesFor?: number;
    readonly queues?: boolean;
    /** The owner of the attempt before. */
    readonly earlier?: string;
    /** The owner whose lease ends. */
    readonly ending?: string;
  }

  const enter = (member: string, { permits = 1, givenAgo = 0, isOwn = false, arrival = '', ...asked }: Asked = {}) => {
    const [, kind = '', owner = ''] = /^(\w+):(.*)$/.exec(member) ?? [];
    const { waited = 0, keptFor = 3 * SECOND, passesFor = 0, queues = true, earlier = owner, ending = '' } = asked;
    const number = [permits, givenAgo, isOwn ? 0 : ''];
    const place = [queues ? 1 : 0, arrival, waited, keptFor, passesFor];
    return run(ENTER, kind, owner, lock, MINUTE, ...number, ...place, earlier, ending);
  };
  const holds = (member: string, life = MINUTE) => client.zAdd(lock, { score: Date.now() + life, value: member });
  /** A ticket that is let in without another attempt for so many ms. */
  const waits = (member: string, arrival = 1_000, letIn = SECOND / 2, leaseEnd = Date.now() + MINUTE) =>
    client.hSet(waiters, member, `${arrival}:${Date.now() + MINUTE}:${Date.now() + letIn}:${leaseEnd}`);
  const isIn = async (member: string) => (await client.zScore(lock, member)) !== null;

  it.each<[what: string, before: () => Promise<unknown>, then: () => Promise<unknown>]>([
    ['a lease has ended', () => holds('write:dead:1', -1), () => enter('read:b:1')],
    ['a ticket is dropped', () => client.hSet(waiters, 'write:dead:1', '1:1'), () => enter('read:b:1')],
    ['one before it called later', () => waits('write:b:1', 1), () => enter('write:b:1', { arrival: 2_000 })],
    ['its holder is gone', () => holds('write:b:1'), () => run(RELEASE, 'write', 'b:1', lock)],
    ['its holder is put out', () => holds('write:b:1'), () => run(INSPECTION.forceUnlock, 'write:b:1', '', 0, lock)],
  ])('The scripts of a shared lock let a waiter in when %s', async (_, before, then) => {
    await before();
    await waits('write:a:1');
    await then();
    expect(await isIn('write:a:1')).toBe(true);
    await until(() => messages.some((message) => message.startsWith('write:a:1=')));
  });

  it.each([
    ['it was not heard of lately', -1, Date.now() + MINUTE],
    ['it hears no messages', SECOND / 2, 0],
  ])('The scripts of a shared lock ask a waiter to come when %s', async (_, letIn, leaseEnd) => {
    await waits('write:a:1', 1_000, letIn, leaseEnd);
    await holds('write:b:1');
    await run(RELEASE, 'write', 'b:1', lock);
    expect(await isIn('write:a:1')).toBe(false);
    await until(() => messages.length > 0);
    expect(messages).toEqual(['write:a:1 wanted']);
  });

  it('The scripts of a shared lock say that a writer waits, once, and behind those that are let in', async () => {
    await holds('write:x:1');
    for (let i = 0; i < 2; i++) await enter('write:a:1');
    await waits('read:b:1', 1);
    await run(RELEASE, 'write', 'x:1', lock);
    expect(await isIn('read:b:1')).toBe(true);
    await until(() => messages.length > 1);
    expect(messages).toEqual(['wanted', expect.stringMatching(/^read:b:1=\d+ wanted$/)]);
  });

  it('The scripts of a shared lock leave a reader that comes first its place, and say when those in front are dropped', async () => {
    await waits('read:dead:1', 1);
    await waits('read:a:1', 0);
    await holds('write:x:1');
    await enter('read:a:1', { arrival: 5 });
    expect(await client.hGet(waiters, 'read:a:1')).toMatch(/^0:/);
    // One that lies ahead is from before the clock of the server was set back.
    const ahead = await enter('read:c:1', { arrival: 1_000 * (Date.now() + MINUTE), waited: 1_000 * MINUTE });
    expect(Number(ahead[5])).toBeLessThan(1_000 * (Date.now() - MINUTE) + 100_000);
    await client.del([lock, waiters]);
    await client.hSet(waiters, 'write:dead:1', `1:${Date.now() + MINUTE}`);
    const [, , , again] = await enter('read:b:1');
    expect(again).toBeGreaterThan(MINUTE / 2);
  });

  it('The scripts of a shared lock count the number of permits that was given last, and let those in that it has room for', async () => {
    await holds('semaphore:x:1');
    await waits('semaphore:a:1');
    let callers = 0;
    const numberAfter = async (givenAt: number, asked: Asked) => {
      await client.hSet(waiters, 'permits', `1:${givenAt}`);
      return (await enter(`semaphore:b:${++callers}`, asked))[6];
    };
    expect(await numberAfter(Date.now(), { permits: 5, givenAgo: MINUTE, isOwn: true })).toBe(1);
    expect(await numberAfter(Date.now() - MINUTE, { permits: 5 })).toBe(1);
    // It was given a minute ago, whenever it is reported to the lock.
    expect(await numberAfter(0, { permits: 1, givenAgo: MINUTE, isOwn: true })).toBe(1);
    const [, givenAt] = (await client.hGet(waiters, 'permits'))?.split(':') ?? [];
    expect(Number(givenAt)).toBeLessThanOrEqual(Date.now() - MINUTE);
    expect(await isIn('semaphore:a:1')).toBe(false);
    expect(await numberAfter(Date.now() + MINUTE, { permits: 2, isOwn: true })).toBe(2);
    expect(await isIn('semaphore:a:1')).toBe(true);
    await client.del(waiters);
    await waits('semaphore:a:2');
    await client.hSet(waiters, 'permits', `3:${Date.now()}`);
    await run(RELEASE, 'semaphore', 'x:1', lock);
    expect(await client.exists(waiters)).toBe(0);
  });

  it.each<[what: string, member: string, passesFor: number, asked: Asked, isGranted: boolean]>([
    ['that is served by its own process', 'semaphore:b:2', PASSES, { ending: 'b:1' }, true],
    ['that called later', 'semaphore:b:2', 0, { ending: 'b:1', arrival: 500 }, true],
    ['not otherwise', 'semaphore:b:2', 0, { ending: 'b:1' }, false],
    ['not where it has another one to pass on', 'semaphore:b:2', PASSES, { ending: 'b:1', passesFor: 1 }, false],
    ['not where it gave none back', 'semaphore:b:2', PASSES, {}, false],
    ['not where its caller takes more than there are', 'semaphore:b:2*2', PASSES, { ending: 'b:1' }, false],
  ])(
    'A process goes on with a permit before the waiter of another one: %s',
    async (_, member, passesFor, asked, isGranted) => {
      await enter('semaphore:x:1', { permits: 2 });
      await enter('semaphore:b:1', { permits: 2 });
      await enter('semaphore:a:1', { permits: 2, arrival: 1_000, passesFor });
      if (asked.ending === undefined) await client.zRem(lock, 'semaphore:x:1');
      await enter(member, { permits: 2, arrival: 2_000, ...asked });
      expect(await isIn(member)).toBe(isGranted);
      if (isGranted || asked.ending === undefined) return;
      await until(() => messages.length > 0);
      expect(messages).toEqual(['semaphore:a:1']);
    },
  );

  it('The scripts of a shared lock let readers in before a writer only where a writer has left', async () => {
    await holds('read:x:1');
    await waits('write:a:1', 1_000);
    await waits('read:b:1', 2_000);
    expect((await enter('read:c:1', { arrival: 500 }))[2]).toBe(2);
    for (const owner of ['x:1', 'c:1']) await run(RELEASE, 'read', owner, lock);
    expect([await isIn('write:a:1'), await isIn('read:b:1')]).toEqual([true, false]);
  });

  it('The scripts of a shared lock count what each owner has: once, and whoever went', async () => {
    const taken = async () => Number(await client.zScore(lock, 'semaphore:held'));
    await enter('semaphore:a:1*3', { permits: 5 });
    await enter('semaphore:b:1', { permits: 5, ending: 'a:1*3' });
    expect(await taken()).toBe(-1);
    await enter('semaphore:b:2', { permits: 5, earlier: 'b:1' });
    expect([await taken(), await isIn('semaphore:b:1')]).toEqual([-1, false]);
    const refusal = await enter('semaphore:c:1', { queues: false });
    expect([refusal[2], refusal[4], await client.exists(waiters)]).toEqual([0, 'b:2', 0]);
    await enter('semaphore:c:1');
    expect((await run(INSPECTION.inspect, '', ''))[3]).toBe(1);
  });

  it('The scripts of a shared lock keep its key until its last lease ends, which a renewal never makes shorter', async () => {
    await holds('read:x:1', 3 * MINUTE);
    await enter('read:a:1');
    expect(await client.pTTL(lock)).toBeGreaterThan(2 * MINUTE);
    expect(await run(RENEW, 'read', 'x:1', MINUTE)).toEqual([expect.any(Number)]);
    expect(await client.zScore(lock, 'read:x:1')).toBeGreaterThan(Date.now() + 2 * MINUTE);
    expect(await run(RENEW, 'read', 'a:1', 5 * MINUTE)).toBe(1);
    expect(await client.pTTL(lock)).toBeGreaterThan(4 * MINUTE);
  });

  it('The scripts of a shared lock show a token for a writer only', async () => {
    const fence = `{${lock}}:fence`;
    await client.set(fence, '7', { PX: MINUTE });
    const keys = [lock, waiters, fence];
    for (const [member, token] of [
      ['read:a:1', ''],
      ['write:a:1', '7'],
    ] as const) {
      await client.del(lock);
      await holds(member);
      const shown = (await client.eval(INSPECTION.inspect.source, { keys, arguments: ['', ''] })) as unknown[];
      expect(shown[2]).toBe(token);
    }
  });

  it('The scripts of a shared lock shorten neither the life of the queue nor a lease, and renew or show none that has ended', async () => {
    await holds('write:x:1');
    await enter('write:a:1', { keptFor: MINUTE });
    await enter('write:b:1');
    expect(await client.pTTL(waiters)).toBeGreaterThan(MINUTE / 2);
    await client.del(lock);
    for (const [member, life] of [
      ['read:ended:1', -1],
      ['read:a:1', MINUTE],
    ] as const) {
      await holds(member, life);
    }
    expect(await run(INSPECTION.inspect, '', '')).toMatchObject({ 0: 'a:1', 4: 1, 5: 'read:a:1' });
    expect(await run(RENEW, 'read', 'ended:1', MINUTE)).toBe(0);
  });
});
