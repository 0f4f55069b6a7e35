import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { createClient } from 'redis';
import { freePort } from '../../../support/free-port';
import { type RedisServer, startRedis } from '../../../support/redis';
import { until } from '../../support/until';
import { KINDS, LOCK_KINDS, type LockKind } from './kinds';
import { type Language, Peer, REGISTRY_KEY } from './peer';
import { FAIR_WAITER_HANGS, SPRING_RENEWS } from './versions';

/** ms; ttl of leases that do not expire during a test. */
const LONG = 60_000;

/** ms; ttl of leases that are renewed, or expire after their process was killed. */
const SHORT = 3_000;

/** ms of allowed delay, on a machine with other work too. Who was not notified waits for a minute and more. */
const SLACK = 10_000;

/** ms from a release to the reply of the notified waiter, in the best of many rounds: a few round trips, and two pipes. */
const SOON = 100;
const ROUNDS = 50;

/** Spring's owner is the UUID of a registry, and Redisson's a UUID with a number; ours name the process. */
const OWNER = /^([0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}|.+:\d+:[\w-]{22}:\d+)$/;
const FIELD = /^([0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}|[^:]+\/\d+\/[\w-]{22}):\d+$/;

/** ms; ttl of leases that outlive a reconnect, and of waiters that may poll only then. */
const MIDDLE = 5_000;

const INCREMENTS = 2_000;

const BOTH: readonly (readonly [Language, Language])[] = [
  ['Node', 'Java'],
  ['Java', 'Node'],
];

type Peers = Readonly<Record<Language, Peer>>;

let server: RedisServer;
let admin: ReturnType<typeof createClient>;
let port: number;
/** One process of each language for all tests, and one that is killed by tests. */
let peers: Peers;
let others: Peers;

beforeAll(async () => {
  port = await freePort();
  server = await startRedis({ port });
  admin = createClient({ socket: { host: '127.0.0.1', port } });
  await admin.connect();
  const start = async (): Promise<Peers> => {
    const [Java, Node] = await Promise.all([Peer.start('Java', port), Peer.start('Node', port)]);
    return { Java, Node };
  };
  [peers, others] = await Promise.all([start(), start()]);
});

/** Starts another process in place of one that was killed. */
async function replace(killed: Language): Promise<void> {
  others = { ...others, [killed]: await Peer.start(killed, port) };
}

afterAll(async () => {
  await Promise.all([peers, others].flatMap((both) => [both?.Java.kill(), both?.Node.kill()]));
  admin.destroy();
  await server.stop();
});

for (const kind of LOCK_KINDS) {
  describe(KINDS[kind].title, () => shared(kind));
}

function shared(kind: LockKind): void {
  const isPrefixed = kind.startsWith('spring');
  let key: string;

  // So that they are connected before a time is measured.
  beforeAll(() =>
    Promise.all(
      [peers, others]
        .flatMap(({ Java, Node }) => [Java, Node])
        .flatMap((peer) => [LONG, SHORT].map((ttl) => peer.ask(kind, 'a', ttl, 'remaining', 'any'))),
    ),
  );

  beforeEach(() => {
    key = `key-${randomUUID()}`;
  });

  const nameInRedis = () => (isPrefixed ? `${REGISTRY_KEY}:${key}` : key);

  it.each(BOTH)('%s holds, %s is refused', async (mine, theirs) => {
    const [holder, other] = [peers[mine], peers[theirs]];
    await holder.ask(kind, 'a', LONG, 'lock', key);
    if (isPrefixed) expect(await admin.get(nameInRedis())).toMatch(OWNER);
    else expect(Object.entries(await admin.hGetAll(key))).toEqual([[expect.stringMatching(FIELD), '1']]);
    expect(await other.ask(kind, 'a', LONG, 'tryLock', key)).toBe('false');
    expect(await other.ask(kind, 'a', LONG, 'tryLock', key, 200)).toBe('false');
    await expect(other.ask(kind, 'a', LONG, 'unlock', key)).rejects.toThrow();
    expect(Number(await other.ask(kind, 'a', LONG, 'remaining', key))).toBeGreaterThan(LONG / 2);
    await holder.ask(kind, 'a', LONG, 'unlock', key);
    expect(await other.ask(kind, 'a', LONG, 'tryLock', key)).toBe('true');
    expect(await holder.ask(kind, 'a', LONG, 'tryLock', key)).toBe('false');
    await other.ask(kind, 'a', LONG, 'unlock', key);
    expect(await admin.exists(nameInRedis())).toBe(0);
  });

  it('Java holds twice, Node is refused until the last unlock', async () => {
    await peers.Java.ask(kind, 'a', LONG, 'lock', key);
    await peers.Java.ask(kind, 'a', LONG, 'lock', key);
    if (!isPrefixed) expect(await peers.Java.ask(kind, 'a', LONG, 'holds', key)).toBe('2');
    await peers.Java.ask(kind, 'a', LONG, 'unlock', key);
    expect(await peers.Node.ask(kind, 'a', LONG, 'tryLock', key)).toBe('false');
    await peers.Java.ask(kind, 'a', LONG, 'unlock', key);
    expect(await peers.Node.ask(kind, 'a', LONG, 'tryLock', key)).toBe('true');
    await peers.Node.ask(kind, 'a', LONG, 'unlock', key);
  });

  if (kind !== 'spring-spin') {
    it.each(BOTH)('%s releases, %s is woken by it', async (mine, theirs) => {
      const delays: number[] = [];
      for (let round = 0; round < 5 || (round < ROUNDS && Math.min(...delays) >= SOON); round++) {
        await peers[mine].ask(kind, 'a', LONG, 'lock', key);
        const woken = peers[theirs].ask(kind, 'a', LONG, 'lock', key);
        await sleep(150); // the waiter has subscribed by then
        const released = performance.now();
        await Promise.all([peers[mine].ask(kind, 'a', LONG, 'unlock', key), woken]);
        delays.push(performance.now() - released);
        await peers[theirs].ask(kind, 'a', LONG, 'unlock', key);
      }
      expect(Math.min(...delays)).toBeLessThan(SOON);
      expect(Math.max(...delays)).toBeLessThan(SLACK);
    });
  }

  const RENEWS = BOTH.filter(([mine]) => mine === 'Node' || !isPrefixed || SPRING_RENEWS);
  it.each(RENEWS)('%s renews, %s sees it', async (mine, theirs) => {
    await peers[mine].ask(kind, 'a', SHORT, 'lock', key);
    const locked = performance.now();
    const seen: number[] = [];
    await until(
      async () => {
        seen.push(Number(await peers[theirs].ask(kind, 'a', SHORT, 'remaining', key)));
        return performance.now() - locked > 1.5 * SHORT;
      },
      { within: 3 * SHORT + SLACK },
    );
    expect(Math.min(...seen)).toBeGreaterThan(0);
    expect(Math.max(...seen)).toBeLessThanOrEqual(SHORT);
    expect(seen.some((remaining, i) => remaining > (seen[i - 1] ?? SHORT))).toBe(true);
    expect(await peers[theirs].ask(kind, 'a', SHORT, 'tryLock', key)).toBe('false');
    await peers[mine].ask(kind, 'a', SHORT, 'unlock', key);
  });

  if (kind === 'redisson') {
    it('Fencing tokens rise from one to the other', async () => {
      const tokens: string[] = [];
      for (const language of ['Java', 'Node', 'Java', 'Node'] as const) {
        tokens.push(await peers[language].ask(kind, 'a', LONG, 'token', key));
      }
      expect(tokens).toEqual(['1', '2', '3', '4']);
    });
  }

  if (kind === 'redisson-fair') {
    it('Waiters of both are served in order, without those that leave', async () => {
      const queue = `redisson_lock_queue:{${key}}`;
      const order: string[] = [];
      const queued = new Set<string>();
      const peerOf = (caller: string) => peers[caller.startsWith('Java') ? 'Java' : 'Node'];
      /** Resolves when the waiter is in the queue. */
      const enqueue = async (caller: string, verb: string, ...args: number[]): Promise<{ answer: Promise<string> }> => {
        const answer = peerOf(caller).ask(kind, caller, LONG, verb, key, ...args);
        await until(
          async () => {
            const isNew = (await admin.lRange(queue, 0, -1)).filter((position) => !queued.has(position));
            for (const position of isNew) queued.add(position);
            return isNew.length > 0;
          },
          { within: SLACK },
        );
        return { answer };
      };
      await peers.Java.ask(kind, 'holder', LONG, 'lock', key);
      const inOrder = ['Java-1', 'Node-1', 'Java-2', 'Node-2', 'Java-3', 'Node-3'];
      const served: Promise<unknown>[] = [];
      const leaving: Promise<string>[] = [];
      for (const caller of inOrder) {
        const { answer } = await enqueue(caller, 'lock');
        const serve = async () => {
          await answer;
          order.push(caller);
          await peerOf(caller).ask(kind, caller, LONG, 'unlock', key);
        };
        served.push(serve());
        if (caller.endsWith('2')) leaving.push((await enqueue(`${caller}-leaves`, 'tryLock', 2_000)).answer);
      }
      expect(await Promise.all(leaving)).toEqual(['false', 'false']);
      // A caller that gives up does not wait until its position is taken out.
      await until(async () => (await admin.lLen(queue)) === inOrder.length, { within: SLACK });
      const released = performance.now();
      await peers.Java.ask(kind, 'holder', LONG, 'unlock', key);
      await Promise.all(served);
      expect(order).toEqual(inOrder);
      expect(performance.now() - released).toBeLessThan(SLACK);
      expect(await admin.exists([queue, `redisson_lock_timeout:{${key}}`])).toBe(0);
    });

    // What a Java waiter that gives up at its turn leaves: the lock is free, and the next one was not notified.
    it('A Java waiter that nobody notifies of a free lock enters within about a second', async () => {
      const poll = (verb: string) => peers.Node.ask(`${kind}/${kind}`, 'polling', LONG, verb, key);
      const queued = (length: number) =>
        until(async () => (await admin.lLen(`redisson_lock_queue:{${key}}`)) === length, { within: SLACK });
      await others.Java.ask(kind, 'a', LONG, 'lock', key);
      const next = peers.Java.ask(kind, 'a', LONG, 'lock', key);
      await queued(1);
      const last = poll('lock');
      await queued(2);
      const freed = performance.now();
      await admin.del(key);
      await next;
      expect(performance.now() - freed).toBeLessThan(1_000 + SLACK);
      await peers.Java.ask(kind, 'a', LONG, 'unlock', key);
      await last;
      await poll('unlock');
    });
  }

  if (!isPrefixed) {
    const names = ['a{b', '}x{', '{}x', 'a}b', '{a}b'];
    const directions = BOTH.flatMap(([mine, theirs]) => names.map((name) => ({ mine, theirs, name })));
    it.each(directions)('$mine holds "$name", and wakes $theirs', async ({ mine, theirs, name }) => {
      await peers[mine].ask(kind, 'a', LONG, 'lock', name);
      expect(await peers[theirs].ask(kind, 'a', LONG, 'tryLock', name)).toBe('false');
      const entered = peers[theirs].ask(kind, 'a', LONG, 'lock', name);
      // Who has not subscribed yet makes an attempt when it has.
      await sleep(SOON);
      const released = performance.now();
      await peers[mine].ask(kind, 'a', LONG, 'unlock', name);
      await entered;
      expect(performance.now() - released).toBeLessThan(SLACK);
      expect(await peers[mine].ask(kind, 'a', LONG, 'tryLock', name)).toBe('false');
      await peers[theirs].ask(kind, 'a', LONG, 'unlock', name);
      expect(await admin.exists(name)).toBe(0);
    });
  }

  it(`2 Java and 2 Node processes count to ${INCREMENTS}`, async () => {
    const counting = [peers.Java, peers.Node, others.Java, others.Node];
    const [callers, times] = [2, INCREMENTS / 8];
    const violations = await Promise.all(
      counting.map((peer) => peer.ask(kind, 'a', 10_000, 'count', key, callers, times)),
    );
    expect(violations).toEqual(['0', '0', '0', '0']);
    expect(await admin.get(`${key}:counter`)).toBe(String(INCREMENTS));
    expect(await admin.exists(nameInRedis())).toBe(0);
  });

  /** Where a lease that expires is what lets the other one in. */
  const TAKES_OVER = BOTH.filter(([, theirs]) => theirs === 'Node' || kind !== 'redisson-fair' || !FAIR_WAITER_HANGS);
  it.each(TAKES_OVER)(
    '%s holds and is stopped, %s takes over, and the first cannot release its lock',
    async (mine, theirs) => {
      await peers[mine].ask(kind, 'a', SHORT, 'lock', key);
      peers[mine].signal('SIGSTOP');
      try {
        const stopped = performance.now();
        await peers[theirs].ask(kind, 'a', SHORT, 'lock', key);
        // Spring's pub-sub waiter polls after its whole expireAfter.
        const patience = kind === 'spring-pub-sub' && theirs === 'Java' ? 2 * SHORT : SHORT;
        expect(performance.now() - stopped).toBeLessThan(patience + SLACK);
      } finally {
        peers[mine].signal('SIGCONT');
      }
      await expect(peers[mine].ask(kind, 'a', SHORT, 'unlock', key)).rejects.toThrow();
      expect(Number(await peers[theirs].ask(kind, 'a', SHORT, 'remaining', key))).toBeGreaterThan(0);
      await peers[theirs].ask(kind, 'a', SHORT, 'unlock', key);
      expect(await admin.exists(nameInRedis())).toBe(0);
    },
  );

  it.each(BOTH)('%s holds, %s waits, and both lose their connections', async (mine, theirs) => {
    await peers[mine].ask(kind, 'a', MIDDLE, 'lock', key);
    const enter = () => peers[theirs].ask(kind, 'a', MIDDLE, 'lock', key);
    // Spring's lock() fails when the cut meets its command.
    const entered = enter().catch(enter);
    await sleep(SOON);
    const cut = performance.now();
    await admin.sendCommand(['CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes']);
    await admin.sendCommand(['CLIENT', 'KILL', 'TYPE', 'pubsub']);
    // A command that is sent while its connection is made again may fail.
    const unlocked = () =>
      peers[mine].ask(kind, 'a', MIDDLE, 'unlock', key).then(
        () => true,
        () => false,
      );
    await until(unlocked, { within: SLACK });
    // A Java waiter may miss the message, and polls after its ttl.
    await entered;
    expect(performance.now() - cut).toBeLessThan(MIDDLE + SLACK);
    expect(await peers[mine].ask(kind, 'a', MIDDLE, 'tryLock', key)).toBe('false');
    await peers[theirs].ask(kind, 'a', MIDDLE, 'unlock', key);
    expect(await admin.exists(nameInRedis())).toBe(0);
  });

  // Redisson keeps the position of a waiter in its fair queue for five minutes after its death.
  if (kind !== 'redisson-fair') {
    it.each(BOTH)('%s is killed while it waits, and %s does not notice', async (mine, theirs) => {
      await peers[theirs].ask(kind, 'a', LONG, 'lock', key);
      const waiting = expect(others[mine].ask(kind, 'a', LONG, 'lock', key)).rejects.toThrow('ended');
      const next = peers[theirs].ask(kind, 'b', LONG, 'lock', key);
      await sleep(SOON);
      await others[mine].kill();
      await waiting;
      await peers[theirs].ask(kind, 'a', LONG, 'unlock', key);
      await next;
      await peers[theirs].ask(kind, 'b', LONG, 'unlock', key);
      expect(await admin.exists(nameInRedis())).toBe(0);
      await replace(mine);
    });
  }

  it.each(TAKES_OVER)('%s is killed, %s takes over', async (mine, theirs) => {
    await others[mine].ask(kind, 'a', SHORT, 'lock', key);
    const takenOver = peers[theirs].ask(kind, 'a', SHORT, 'lock', key);
    await sleep(SHORT / 2);
    const killed = performance.now();
    await others[mine].kill();
    await takenOver;
    // Spring's pub-sub waiter polls after its whole expireAfter.
    const patience = kind === 'spring-pub-sub' && theirs === 'Java' ? 2 * SHORT : SHORT;
    expect(performance.now() - killed).toBeLessThan(patience + SLACK);
    expect(await peers[mine].ask(kind, 'a', SHORT, 'tryLock', key)).toBe('false');
    await peers[theirs].ask(kind, 'a', SHORT, 'unlock', key);
    await replace(mine);
  });
}
