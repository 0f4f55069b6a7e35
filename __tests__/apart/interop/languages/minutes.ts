import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import Table from 'cli-table3';
import { build } from 'esbuild';
import { createClient } from 'redis';
import { Lateness } from '../../../../support/lateness';
import { packInto } from '../../../../support/pack';
import { startRedis } from '../../../../support/redis';
import { outcomeOf } from '../bounds';
import { Peer } from '../peer';
import { cacheOf, runStep } from './cache';
import type { Language } from './language';
import { librariesOf } from './languages';
import { LockWatch, starvedIn } from './watch';

/** Callers of each process, ms for which each turn has the lock, and ttl of all leases in ms. */
const LOAD = { node: 4, others: 2, work: 10, ttl: 5_000 };

/** ms of a round, and from one kill to the next. */
const ROUND = 60_000;
const KILL_EVERY = 10_000;

interface Service {
  readonly title: string;
  readonly command: readonly [string, ...string[]];
  readonly kind: string;
  readonly name: string;
  readonly callers: number;
}

const LOCK = 'shared';

/** Our process, with the library as it is packed. */
async function nodePeer(): Promise<string> {
  const folder = cacheOf('packed');
  const library = join(folder, 'node_modules/redis-lock-registry');
  const outfile = join(folder, 'peer.cjs');
  mkdirSync(library, { recursive: true });
  runStep('tar', ['-xzf', await packInto(folder), '-C', library, '--strip-components', '1']);
  await build({
    entryPoints: [join(__dirname, '../node-peer.ts')],
    outfile,
    bundle: true,
    packages: 'external',
    platform: 'node',
    target: 'node20',
    plugins: [
      {
        name: 'packed',
        setup: ({ onResolve }) => onResolve({ filter: /\/lib$/ }, () => ({ path: library, external: true })),
      },
    ],
  });
  return outfile;
}

/** Competes in rounds, in which one process after the other is killed and started again. */
class Rounds {
  readonly watch = new LockWatch();
  readonly failures: string[] = [];
  readonly #port: number;
  readonly #mark: (text: string) => Promise<unknown>;
  #processes = 0;
  kills = 0;

  constructor(port: number, mark: (text: string) => Promise<unknown>) {
    this.#port = port;
    this.#mark = mark;
  }

  async hold(phase: string, services: readonly Service[]): Promise<void> {
    const endsAt = performance.now() + ROUND;
    const left = () => Math.ceil(endsAt - performance.now());
    const running: (Peer | undefined)[] = services.map(() => undefined);
    const runOne = async (service: Service, i: number) => {
      while (left() > 0) {
        const { kind, name, callers, title } = service;
        const peer = await Peer.run(service.command[0], [...service.command.slice(1), String(this.#port)]);
        const id = `p${this.#processes++}`;
        this.watch.knows(id, phase, title);
        await this.#mark(`began ${id}`);
        running[i] = peer;
        try {
          const args = [callers, LOAD.work, Math.max(1, left()), `witness-${id}`];
          const { violations } = outcomeOf(await peer.ask(kind, 'all', LOAD.ttl, 'compete', name, ...args));
          if (violations > 0) this.failures.push(`${title}: ${violations} violations within the process`);
        } catch (error) {
          // It was killed.
          if (!peer.hasEnded) this.failures.push(`${title}: ${error}`);
        } finally {
          running[i] = undefined;
          await peer.kill();
          await this.#mark(`ended ${id}`);
        }
      }
    };
    const killNowAndThen = async () => {
      let next = Math.floor(Math.random() * services.length);
      while (left() > KILL_EVERY) {
        await sleep(KILL_EVERY);
        const victim = running[next++ % services.length];
        if (victim === undefined) continue;
        this.kills++;
        await victim.kill();
      }
    };
    await Promise.all([...services.map(runOne), killNowAndThen()]);
  }
}

/**
 * Services of other languages compete for one lock, in rounds of a minute: beside Node processes of these kinds, as `spin`
 * or `pub-sub/sharedWithPollers`, and among themselves, with more of them in place of Node's; as many minutes of each.
 * Returns the exit code: 1 when two held the lock at a time, or a process starved.
 */
export async function competeForMinutes(
  languages: readonly Language[],
  names: readonly string[],
  minutes: number,
  kinds: readonly string[],
): Promise<number> {
  for (const language of languages) language.install();
  const peer = await nodePeer();
  const node = kinds.map(
    (kind, i): Service => ({
      title: `Node ${kind} (${i + 1})`,
      command: [process.execPath, peer],
      kind: `shared@orders/${kind}`,
      name: LOCK,
      callers: LOAD.node,
    }),
  );
  const others = languages.flatMap((language) =>
    librariesOf(language, names)
      .filter(({ there, isVariant }) => there === 'orders:NAME' && !isVariant)
      .map(
        ({ id, there }): Service => ({
          title: `${language.title} ${id}`,
          command: language.peer,
          kind: id,
          name: there.replace('NAME', LOCK),
          callers: LOAD.others,
        }),
      ),
  );
  if (others.length === 0) {
    process.stderr.write('None of these libraries takes a name with a colon as it is\n');
    return 64;
  }
  // As many as beside Node: a lock that more processes share comes to each of them less often.
  const inPlaceOfNode = node.map((_, i) => {
    const other = others[i % others.length] as Service;
    return { ...other, title: `${other.title} (${2 + Math.floor(i / others.length)})` };
  });
  const server = await startRedis({ port: true });
  const { port } = server.address as { port: number };
  const connect = () => createClient({ socket: { host: '127.0.0.1', port } }).connect();
  const [admin, monitor] = await Promise.all([connect(), connect()]);
  const rounds = new Rounds(port, (text) => admin.sendCommand(['ECHO', text]));
  const lateness = new Lateness();
  try {
    await monitor.monitor((line) => rounds.watch.sees(String(line)));
    for (let minute = 0; minute < minutes; minute++) {
      await rounds.hold('alone', [...others, ...inPlaceOfNode]);
      await rounds.hold('beside', [...others, ...node]);
    }
    await admin.ping();
  } finally {
    lateness.stop();
    monitor.destroy();
    admin.destroy();
    await server.stop();
  }
  const { watch, failures, kills } = rounds;
  const rows = watch.results();
  const table = new Table({
    head: ['process', 'with', 'turns', 'longest wait', 'wait, 99 %'],
    style: { head: [], border: [] },
  });
  const seconds = (ms: number) => `${(ms / 1_000).toFixed(1)} s`;
  for (const { title, phase, turns, longest, p99 } of rows) {
    table.push([title, phase === 'alone' ? 'no Node' : 'Node', turns, seconds(longest), seconds(p99)]);
  }
  const turns = rows.reduce((sum, row) => sum + row.turns, 0);
  const { ratio, limit, starved } = starvedIn(rows, lateness.worst);
  process.stdout.write(
    `${table}\n${turns} turns, ${kills} kills, ${watch.overlaps} overlaps; the longest wait beside Node is ` +
      `${ratio.toFixed(2)} times that without it; starvation begins at ${seconds(limit)}\n`,
  );
  if (watch.overlaps > 0) failures.push(`${watch.overlaps} times two processes held the lock`);
  for (const { title, longest } of starved) failures.push(`${title} starved: it waited for ${seconds(longest)}`);
  for (const failure of failures) process.stderr.write(`${failure}\n`);
  return failures.length > 0 ? 1 : 0;
}
