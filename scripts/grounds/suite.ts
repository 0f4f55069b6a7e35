import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import { check, type Report } from '../../support/grounds/cell';
import type { Server } from './server';
import { UserProcess } from './user-process';

/** Who runs the suite: a runtime, in the folder of a client. */
export interface User {
  readonly folder: string;
  /** The runtime with its options: the path of a program follows. */
  readonly command: readonly string[];
  readonly client: string;
  readonly types: readonly string[];
  readonly server: Server;
  /** How the client reaches the server where it does so over HTTP. */
  readonly upstash?: { readonly url: string; readonly token: string };
}

/** ms: nothing that is seen may come from a lease that ended by itself. */
const LONG = 30_000;
/** ms, of leases that are to end by themselves. */
const SHORT = 2_000;
const SECTIONS = 20;

/** What Node and the others print of a warning of ours, which is no fault where the server was killed. */
const OF_A_WARNING = /LockWarning|--trace-warnings|^\s*$|RELEASE_UNCERTAIN|RELEASE_FAILED/;

/** What a user does with the library, in two processes at a time: all of it with the first type of lock, less with the others. */
export async function runSuite(user: User, report: Report): Promise<void> {
  for (const [i, type] of user.types.entries()) {
    const processes: UserProcess[] = [];
    const start = (expireAfter: number) => {
      const env = {
        ...process.env,
        NODE_OPTIONS: undefined,
        NO_COLOR: '1',
        GROUNDS: JSON.stringify({
          client: user.client,
          url: user.server.url,
          lockType: type,
          expireAfter,
          upstash: user.upstash,
        }),
      };
      const started = new UserProcess([...user.command, 'worker.mjs'], user.folder, env);
      processes.push(started);
      return started.ready();
    };
    const ofType: Report = ({ what, fault }) => report({ what: `${type}: ${what}`, ...(fault && { fault }) });
    try {
      await together(start, ofType, i === 0);
      await faults(start, ofType, user.server, i === 0);
    } finally {
      for (const one of processes) one.kill('SIGKILL');
    }
  }
}

type Start = (expireAfter: number) => Promise<UserProcess>;

/** Without a fault: leases are so long that none ends by itself. */
async function together(start: Start, report: Report, isFirst: boolean): Promise<void> {
  const [one, other] = await Promise.all([start(LONG), start(LONG)]);
  await check(report, 'two processes exclude each other', async () => {
    const both = await Promise.all(
      [one, other].map((it) => it.ask('sections', { key: 'stock', times: SECTIONS }, 60_000)),
    );
    const results = both as { overlaps: number; done: number }[];
    assert.deepEqual(
      [results.map(({ overlaps }) => overlaps), Math.max(...results.map(({ done }) => done))],
      [[0, 0], 2 * SECTIONS],
    );
  });
  await check(report, 'what is held is refused to another process, and handed over', async () => {
    await one.ask('hold', { key: 'held' });
    assert.equal(await other.ask('tryLock', { key: 'held' }), 'taken');
    const waiting = other.ask('run', { key: 'held' });
    await sleep(200);
    assert.equal(await one.ask('unlock', { key: 'held' }), 'unlocked');
    await waiting;
  });
  if (isFirst) {
    await check(report, '`await using` gives back', async () =>
      assert.deepEqual(await one.ask('using', { key: 'using' }), ['free', 'free']),
    );
    await check(report, '`run` within `run` enters again', async () =>
      assert.equal(await one.ask('reenter', { key: 'nested' }), 'entered again'),
    );
    await check(report, '`once` runs once for two processes', async () =>
      assert.deepEqual(await Promise.all([one, other].map((it) => it.ask('once', { key: 'token' }))), [1, 1]),
    );
    await check(report, '`lead` leads', () => one.ask('lead', { key: 'leader' }));
  }
  const following = isFirst ? other.ask('lead', { key: 'leader' }) : undefined;
  following?.catch(() => undefined);
  await check(report, 'SIGTERM: `close()` hands over at once, and the process ends by itself', async () => {
    await one.ask('work', { key: 'work' });
    const waiting = other.ask('run', { key: 'work' }, LONG / 2);
    await sleep(200);
    one.kill('SIGTERM');
    await waiting;
    assert.equal(await one.end(), 0);
  });
  if (following !== undefined) await check(report, '`lead` passes to the next process', () => following);
  await check(report, 'after `close()` nothing keeps the process', async () => assert.equal(await other.close(), 0));
  await check(report, 'nothing is written to stderr', () => assert.equal(one.stderr + other.stderr, ''));
}

/** With short leases: processes and the server are killed, and an event loop stands still. */
async function faults(start: Start, report: Report, server: Server, isFirst: boolean): Promise<void> {
  const [one, other] = await Promise.all([start(SHORT), start(SHORT)]);
  if (isFirst) {
    await check(report, 'after a blocked loop the lease says at once that it is over', async () => {
      const seen = await one.ask<{ remaining: number }>('block', { key: 'blocked', ms: SHORT + 500 });
      assert.deepEqual(seen, { remaining: 0, thrown: 'LockLostError', aborted: true, unlocked: 'LockLostError' });
    });
    await check(report, 'a lease that is longer held than its ttl is renewed', async () => {
      await one.ask('hold', { key: 'renewed' });
      await sleep(1.5 * SHORT);
      assert.equal(await other.ask('tryLock', { key: 'renewed' }), 'taken');
      assert.equal(await one.ask('unlock', { key: 'renewed' }), 'unlocked');
    });
  }
  await check(report, 'kill -9: the next process has the lock when the ttl is over', async () => {
    await one.ask('hold', { key: 'orphan' });
    const waiting = other.ask('run', { key: 'orphan' });
    one.kill('SIGKILL');
    await waiting;
  });
  if (!isFirst) return;
  await check(report, 'a server that was killed and comes back: a waiting call has the lock', async () => {
    const holder = await start(SHORT);
    await holder.ask('hold', { key: 'outage' });
    const waiting = other.ask('run', { key: 'outage' });
    waiting.catch(() => undefined);
    await sleep(300);
    await server.kill();
    await sleep(1_000);
    await server.start();
    await waiting;
    await holder.ask('run', { key: 'after the outage' });
    assert.equal(await holder.ask('unlock', { key: 'outage' }), 'LockLostError');
    holder.kill('SIGKILL');
  });
  await check(report, 'a warning is on stderr, with its code', async () => {
    await other.ask('abandon', { key: 'abandoned' });
    assert.equal(await other.close(), 0);
    assert.match(other.stderr, /CLOSED_WHILE_HELD/);
    const rest = other.stderr.split('\n').filter((line) => !OF_A_WARNING.test(line) && !/CLOSED_WHILE_HELD/.test(line));
    assert.deepEqual(rest, []);
  });
}
