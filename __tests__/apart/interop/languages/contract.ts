import { randomInt, randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { createClient } from 'redis';
import { LockTimeoutError, RedisLockRegistry } from '../../../../lib';
import type { LockType } from '../../../../lib/kinds';
import { freePort } from '../../../../support/free-port';
import { type RedisServer, startRedis } from '../../../../support/redis';
import { after, isWithinBounds, outcomeOf, ROUNDS, type Sides } from '../bounds';
import { Peer } from '../peer';
import { CLIENTS } from './clients';
import { type Figures, keepFigures } from './figures';
import type { Language, Library } from './language';
import { librariesOf } from './languages';

/** Our types whose locks are one string with an expiry. */
const TYPES = ['spin', 'pub-sub', 'fair'] as const satisfies readonly LockType[];

/** ms; ttl of leases that do not expire during a test. */
const LONG = 60_000;

/** ms; ttl of leases that expire after their process was killed. */
const SHORT = 2_000;

/** ms of allowed delay, on a machine with other work too. */
const SLACK = 10_000;

/** Releases that are measured in each direction: all of them have to wake the waiter. */
const RELEASES = 3;

/** Callers of each side under load, ms for which each turn has the lock, and ms of a round. */
const LOAD = { ours: 4, theirs: 2, work: 10, observed: 6_000 };

type Side = 'ours' | 'theirs';

const BOTH: readonly (readonly [Side, Side])[] = [
  ['ours', 'theirs'],
  ['theirs', 'ours'],
];

const nameFrom = (template: string, name: string) => template.replace('NAME', name);

/** A lock that both sides use, with what is asked of each. */
class Shared {
  readonly #name = `lock-${randomUUID()}`;
  readonly #library: Library;
  readonly #sides: Readonly<Record<Side, Peer>>;
  readonly #type: LockType;

  constructor(library: Library, sides: Readonly<Record<Side, Peer>>, type: LockType) {
    this.#library = library;
    this.#sides = sides;
    this.#type = type;
  }

  /** What the lock is called here. */
  get key(): string {
    return nameFrom(this.#library.key, this.#name);
  }

  get nameInRedis(): string {
    return [this.#library.registryKey, this.key].filter(Boolean).join(':');
  }

  /** Asks a caller of the lock's own: others don't wait for its commands. */
  ask(side: Side, verb: string, ttl = LONG, ...args: (number | string)[]): Promise<string> {
    return this.askCaller('a', side, verb, ttl, ...args);
  }

  askCaller(caller: string, side: Side, verb: string, ttl = LONG, ...args: (number | string)[]): Promise<string> {
    const { id, there, registryKey } = this.#library;
    const peer = this.#sides[side];
    const of = `${caller}-of-${this.#name}`;
    if (side === 'theirs') return peer.ask(id, of, ttl, verb, nameFrom(there, this.#name), ...args);
    return peer.ask(`shared@${registryKey}/${this.#type}`, of, ttl, verb, this.key, ...args);
  }

  compete(side: Side): Promise<string> {
    const { work, observed, ...callers } = LOAD;
    return this.ask(side, 'compete', LONG, callers[side], work, observed, `witness-${this.#name}`);
  }
}

/** Registers the tests beside the libraries of a language. */
export function testLanguage(language: Language): void {
  const libraries = librariesOf(language);
  const figures = new Map<string, { -readonly [name in keyof Figures]: Figures[name] }>(
    libraries.map(({ id }) => [
      id,
      { date: new Date().toISOString().slice(0, 10), wakesOurs: {}, wakesTheirs: [], shares: {} },
    ]),
  );
  let server: RedisServer;
  let port: number;
  let admin: ReturnType<typeof createClient>;
  /** A process of each side for all tests, and one that tests kill. */
  let peers: Record<Side, Peer>;
  let others: Record<Side, Peer>;
  /** What is asked of one side goes to the process that is killed. */
  const withKilled = async (mine: Side) => {
    if (others[mine].hasEnded) others[mine] = await start[mine]();
    return { ...peers, [mine]: others[mine] };
  };

  const start = { ours: () => Peer.start('Node', port), theirs: () => Peer.run(first, [...rest, String(port)]) };
  const [first, ...rest] = language.peer;
  const startBoth = async () => {
    const [ours, theirs] = await Promise.all([start.ours(), start.theirs()]);
    return { ours, theirs };
  };
  const inRedis = ({ nameInRedis }: Shared) => admin.withTypeMapping({ 36: Buffer }).get(nameInRedis);

  beforeAll(async () => {
    port = await freePort();
    server = await startRedis({ port });
    admin = createClient({ socket: { host: '127.0.0.1', port } });
    await admin.connect();
    [peers, others] = await Promise.all([startBoth(), startBoth()]);
  });

  afterAll(async () => {
    await Promise.all([peers, others].flatMap((both) => [both?.ours.kill(), both?.theirs.kill()]));
    admin?.destroy();
    await server?.stop();
    for (const [id, measured] of figures) keepFigures(id, measured);
  });

  describe.each(libraries)('$title', (library) => {
    const measured = figures.get(library.id) as { -readonly [name in keyof Figures]: Figures[name] };
    const share = (type: LockType) => new Shared(library, peers, type);

    it.each(TYPES)('it holds, and %s is refused', async (type) => {
      const lock = share(type);
      expect(await lock.ask('theirs', 'lock')).toBe('true');
      expect((await inRedis(lock))?.toString('latin1')).toMatch(library.token);
      expect(await admin.pTTL(lock.nameInRedis)).toBeGreaterThan(LONG / 2);
      expect(await lock.ask('ours', 'tryLock')).toBe('false');
      expect(await lock.ask('ours', 'tryLock', LONG, 200)).toBe('false');
      await expect(lock.ask('ours', 'unlock')).rejects.toThrow('not held');
      await lock.ask('theirs', 'unlock');
      // The position of the caller that gave up may be in the queue for a moment yet.
      expect(await lock.ask('ours', 'lock')).toBe('true');
      await lock.ask('ours', 'unlock');
      expect(await admin.exists(lock.nameInRedis)).toBe(0);
    });

    it.each(TYPES)('%s holds, and it is refused, and says so of the lock', async (type) => {
      const lock = share(type);
      await lock.ask('ours', 'lock');
      const owner = await inRedis(lock);
      expect(await lock.ask('theirs', 'tryLock')).toBe('false');
      expect(await lock.ask('theirs', 'about')).toBe(library.about);
      expect(await inRedis(lock)).toEqual(owner);
      await lock.ask('ours', 'unlock');
      expect(await lock.ask('theirs', 'tryLock')).toBe('true');
      await lock.ask('theirs', 'unlock');
      expect(await admin.exists(lock.nameInRedis)).toBe(0);
    });

    it(`a release of a lock that it has lost: ${library.lateRelease ?? 'refused'}`, async () => {
      const lock = share('spin');
      await lock.ask('theirs', 'lock');
      await admin.del(lock.nameInRedis);
      await lock.ask('ours', 'lock');
      const late = lock.ask('theirs', 'unlock');
      if (library.lateRelease === undefined) await expect(late).rejects.toThrow();
      else await late;
      expect(await admin.exists(lock.nameInRedis)).toBe(library.lateRelease === 'deletes' ? 0 : 1);
      await lock.ask('ours', 'unlock').catch((error: unknown) => {
        if (library.lateRelease !== 'deletes') throw error;
      });
    });

    it(`its release lets ${TYPES.join(', ')} in`, async () => {
      const of = async (type: LockType) => {
        measured.wakesOurs[type] = await releases(share(type), 'theirs', 'ours');
      };
      await Promise.all(TYPES.map(of));
    });

    it('our release lets it in', async () => {
      measured.wakesTheirs = await releases(share('pub-sub'), 'ours', 'theirs');
    });

    async function releases(lock: Shared, from: Side, to: Side): Promise<number[]> {
      const delays: number[] = [];
      for (let round = 0; round < RELEASES; round++) {
        await lock.ask(from, 'lock');
        const entered = lock.ask(to, 'lock');
        // At any time between two polls.
        await sleep(randomInt(150, 400));
        const released = performance.now();
        await Promise.all([lock.ask(from, 'unlock'), entered]);
        delays.push(Math.round(performance.now() - released));
        await lock.ask(to, 'unlock');
      }
      expect(Math.max(...delays)).toBeLessThan(SLACK);
      return delays;
    }

    it.each(BOTH)('a waiter that gives up changes nothing: %s hold, %s give up', async (holder, waiter) => {
      const lock = share('pub-sub');
      await lock.ask(holder, 'lock');
      const owner = await inRedis(lock);
      const next = lock.askCaller('b', waiter, 'lock');
      expect(await lock.ask(waiter, 'tryLock', LONG, 300)).toBe('false');
      expect(await inRedis(lock)).toEqual(owner);
      await lock.ask(holder, 'unlock');
      expect(await next).toBe('true');
      await lock.askCaller('b', waiter, 'unlock');
      expect(await admin.exists(lock.nameInRedis)).toBe(0);
    });

    if (library.isBinary) {
      it.each(CLIENTS)(
        'its token is no text, and a process with $name waits, shows it, and takes it by force',
        async (client) => {
          const lock = share('pub-sub');
          await lock.ask('theirs', 'lock');
          const { client: connected, end } = await client.connect(port);
          const registry = new RedisLockRegistry(connected, {
            registryKey: library.registryKey,
            lockType: 'pub-sub',
            onWarning: () => undefined,
          });
          try {
            const ours = registry.obtain(lock.key);
            expect(await ours.tryLock()).toBeNull();
            await expect(ours.lock({ waitTime: 300 })).rejects.toThrow(LockTimeoutError);
            expect(await ours.inspect()).toMatchObject({ held: true, isOurs: false, owner: expect.any(String) });
            expect(await ours.forceUnlock()).toMatchObject({ held: true });
            expect(await admin.exists(lock.nameInRedis)).toBe(0);
            await ours.run(() => lock.ask('theirs', 'tryLock').then((taken) => expect(taken).toBe('false')));
            await lock.ask('theirs', 'unlock').catch(() => undefined);
          } finally {
            await registry.close();
            end();
          }
        },
      );
    }

    if (library.there === `${library.registryKey}:NAME`) {
      const names = { ...library, there: 'NAME', registryKey: '', key: 'NAME' };
      it.each(['spin', 'pub-sub'] as const)('a name without a colon is shared with %s', async (type) => {
        const lock = new Shared(names, peers, type);
        for (const [holder, other] of BOTH) {
          await lock.ask(holder, 'lock');
          expect(lock.nameInRedis).not.toContain(':');
          expect(await admin.exists(lock.nameInRedis)).toBe(1);
          expect(await lock.ask(other, 'tryLock')).toBe('false');
          const entered = lock.ask(other, 'lock');
          await lock.ask(holder, 'unlock');
          await entered;
          await lock.ask(other, 'unlock');
        }
      });
    }

    if (library.withoutExpiry) {
      it(`it holds a key without expiry, and ${TYPES.join(', ')} wait for its release`, async () => {
        const wait = async (type: LockType) => {
          const lock = share(type);
          await lock.ask('theirs', 'lock', 0);
          expect(await admin.pTTL(lock.nameInRedis)).toBe(-1);
          const entered = lock.ask('ours', 'lock');
          expect(await lock.askCaller('b', 'ours', 'tryLock', LONG, 300)).toBe('false');
          expect(await admin.pTTL(lock.nameInRedis)).toBe(-1);
          await lock.ask('theirs', 'unlock');
          expect(await entered).toBe('true');
          await lock.ask('ours', 'unlock');
        };
        await Promise.all(TYPES.map(wait));
      });
    }
  });

  it.each(BOTH)(
    `${language.title}: %s hold and are killed, %s take over at the end of the ttl`,
    async (mine, theirs) => {
      const sides = await withKilled(mine);
      const locks = libraries.map((library, i) => new Shared(library, sides, TYPES[i % TYPES.length] as LockType));
      const hold = async (lock: Shared) => {
        await lock.ask(mine, 'lock', SHORT);
        return inRedis(lock);
      };
      const owners = await Promise.all(locks.map(hold));
      const entered = locks.map((lock) => lock.ask(theirs, 'lock'));
      await others[mine].kill();
      const ended = performance.now();
      await Promise.all(entered);
      expect(performance.now() - ended).toBeLessThan(SHORT + SLACK);
      for (const [i, lock] of locks.entries()) expect(await inRedis(lock)).not.toEqual(owners[i]);
      await Promise.all(locks.map((lock) => lock.ask(theirs, 'unlock')));
    },
  );

  it.each(BOTH)(`${language.title}: %s are killed while they wait, and %s do not notice`, async (mine, theirs) => {
    const sides = await withKilled(mine);
    const locks = libraries.map((library, i) => new Shared(library, sides, TYPES[i % TYPES.length] as LockType));
    await Promise.all(locks.map((lock) => lock.ask(theirs, 'lock')));
    const waiting = locks.map((lock) => expect(lock.ask(mine, 'lock')).rejects.toThrow('ended'));
    const next = locks.map((lock) => lock.askCaller('b', theirs, 'lock'));
    await sleep(200);
    await others[mine].kill();
    await Promise.all(waiting);
    await Promise.all(locks.map((lock) => lock.ask(theirs, 'unlock')));
    await Promise.all(next);
    await Promise.all(locks.map((lock) => lock.askCaller('b', theirs, 'unlock')));
    for (const lock of locks) expect(await admin.exists(lock.nameInRedis)).toBe(0);
  });

  it.each(TYPES)(
    `${language.title}: under load both sides have their share of %s, and exclude each other`,
    async (type) => {
      const compete = async (library: Library) => {
        const lock = new Shared(library, peers, type);
        const isShared = (sides: Sides) => isWithinBounds(sides, library.leastShare);
        let sides: Sides | undefined;
        for (let round = 0; round < ROUNDS && !(sides && isShared(sides)); round++) {
          const [node, rival] = await Promise.all([lock.compete('ours'), lock.compete('theirs')]);
          sides = { node: after(sides?.node, outcomeOf(node)), rival: after(sides?.rival, outcomeOf(rival)) };
        }
        return { library: library.id, isWithinBounds: isShared(sides as Sides), ...(sides as Sides) };
      };
      for (const { library, isWithinBounds, node, rival } of await Promise.all(libraries.map(compete))) {
        const of = figures.get(library) as Figures;
        of.shares[type] = {
          ours: node.turns,
          theirs: rival.turns,
          longestOurs: node.longestWait,
          longestTheirs: rival.longestWait,
        };
        const violations = node.violations + rival.violations;
        const outcome = { library, node, rival, violations, isWithinBounds };
        expect(outcome).toMatchObject({ violations: 0, isWithinBounds: true });
      }
    },
  );
}
