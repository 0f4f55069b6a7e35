import { expect, it } from '@jest/globals';
import { LockInspectionError, type RedisClient, type RedisCommands } from '../../../lib';
import { canScan } from '../../../lib/redis/cluster';
import type { LockFixture } from '../lock-fixture';

/** As rslock, rueidislock and walrus write it. */
const BINARY = Buffer.from([0xff, 0x00, 0x41, 0xc3, 0x28, 0xed, 0xa0, 0x80, 0x7b, 0x0a, 0xe2, 0x82, 0xac, 0xf0, 0x9f]);
const SHOWN = '{ff}\0A{c3}({ed}{a0}{80}{7b}\n{e2}{82}{ac}{f0}{9f}';

const TOKENS: [what: string, token: Buffer, shown: string][] = [
  ['that is no UTF-8', BINARY, SHOWN],
  ['that is no UTF-8, of which other bytes make the same text to a client', Buffer.from([0xfe, 0x80]), '{fe}{80}'],
  ['that is UTF-8', Buffer.from('größer € 😀 \\'), 'größer € 😀 \\'],
  ['that looks like one that is no UTF-8', Buffer.from('{ff}{'), '{7b}ff}{7b}'],
  ['that is long', Buffer.from('a'.repeat(999) + '€'.repeat(1_000)), `${'a'.repeat(999)}{+3000}`],
  ['that is long, and no UTF-8', Buffer.alloc(1_000_000, 0xff), `${'{ff}'.repeat(1_000)}{+999000}`],
];

/** Once the client has been answered by an inspection, `change` comes before its next command. */
function changing(client: RedisClient, change: () => Promise<unknown>): RedisClient {
  const answered = async (asked: Promise<unknown>): Promise<unknown> => {
    const reply = await asked;
    if (Array.isArray(reply)) await change();
    return reply;
  };
  const changed = (commands: RedisCommands): RedisCommands => ({
    eval: (script, options) => answered(commands.eval(script, options)),
    evalSha: (sha1, options) => answered(commands.evalSha(sha1, options)),
  });
  return {
    ...changed(client),
    withCommandOptions: (options) => changed(client.withCommandOptions?.(options) ?? client),
  };
}

export function foreignOwners(fixture: LockFixture): void {
  it.each(TOKENS)(
    'A lock that another program holds, with a token %s, is waited for, shown, and unlocked by force',
    async (_what, token, shown) => {
      await fixture.takenByOthers('key', token);
      const registry = fixture.registry();
      const lock = registry.obtain('key');
      expect(await lock.tryLock()).toBeNull();
      const waiting = lock.lock();
      waiting.catch(() => undefined); // awaited below
      expect(await lock.inspect()).toMatchObject({ held: true, owner: shown, isOurs: false, name: undefined });
      if (canScan(fixture.clients[0])) {
        const listed = [];
        for await (const { key, owner } of registry.list()) listed.push([key, owner]);
        expect(listed).toEqual([['key', shown]]);
      }
      expect(await lock.forceUnlock()).toMatchObject({ held: true, owner: shown });
      await (await waiting).unlock();
      expect(await fixture.isInRedis('key')).toBe(false);
    },
  );

  it('A forced unlock does nothing to a lock that another program has taken since it was inspected, and says so', async () => {
    await fixture.takenByOthers('key', Buffer.from([0xff]));
    const taken = () => fixture.takenByOthers('key', Buffer.from([0xfe]));
    const lock = fixture.registryOn(changing(fixture.clients[0], taken)).obtain('key');
    const error = await lock.forceUnlock().catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(LockInspectionError);
    expect(error).toMatchObject({
      name: 'LockInspectionError',
      message: 'Lock "key" was not unlocked by force: by now another owner has it',
    });
    expect(await fixture.isInRedis('key')).toBe(true);
    await fixture.admin.del(fixture.nameOf('key'));
  });

  it('A forced unlock of a lock that its holder has left since it was inspected says that nobody holds it', async () => {
    await fixture.takenByOthers('key', Buffer.from([0xff]));
    const left = () => fixture.admin.del(fixture.nameOf('key'));
    const lock = fixture.registryOn(changing(fixture.clients[0], left)).obtain('key');
    expect(await lock.forceUnlock()).toMatchObject({ held: false, owner: undefined });
  });

  it('A key whose name is no UTF-8 does not keep the locks from being listed', async () => {
    if (!canScan(fixture.clients[0])) return;
    const name = Buffer.concat([Buffer.from(fixture.nameOf('{tag}')), Buffer.from([0xff])]);
    await fixture.admin.send?.(fixture.nameOf('{tag}'), ['SET', name, 'x', 'PX', '60000']);
    const registry = fixture.registry();
    const lease = await registry.obtain('key').lock();
    const listed = [];
    for await (const { key } of registry.list()) listed.push(key);
    expect(listed).toEqual(['key']);
    await lease.unlock();
    await fixture.admin.send?.(fixture.nameOf('{tag}'), ['DEL', name]);
  });
}
