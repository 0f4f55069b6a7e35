import { readFileSync, writeFileSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from '@jest/globals';
import { startCluster } from '../../support/cluster';
import { Node } from '../../support/node';
import { atTheEnd, describePrivate, untilTheEnd } from '../../support/private-redis';
import { Program } from '../../support/program';
import { startSentinel } from '../../support/sentinel';
import { until } from '../../support/until';
import { COMMAND, hasScript } from './command';

/*
 * Runs every line of docs/operations.md that begins with "$ ", on a terminal of 80 columns and 24 lines, and compares what it
 * prints with the page. TRANSCRIPTS=write writes it into the page.
 */

const PAGE = join(__dirname, '../../../docs/operations.md');
const ID = 'h0pCmsO5S7mSQpHDOZJ1Sw';

const BLOCKS = [...readFileSync(PAGE, 'utf8').matchAll(/^```console\n\$ (.*)\n([\s\S]*?)^```$/gm)].map(
  ([, line = '', output = '']) => ({ line, output }),
);

const LIMIT = { within: 60_000 };

/** Locks of several kinds, as processes leave them in Redis. */
async function fill(server: Node): Promise<void> {
  const send = (...command: string[]) => server.send(...command);
  const [seconds] = (await send('TIME')) as [string];
  const now = Number(seconds) * 1_000;
  const micros = (msAgo: number) => String((now - msAgo) * 1_000);
  await send('FLUSHALL');
  await send('SET', 'orders:order:42', `web-7:4121:${ID}:${micros(151_000)}`, 'PX', '52000');
  await send('SET', 'orders:invoice', `kept@web-7:4121:${ID}:${micros(19_000)}`, 'PX', '41000');
  await send('SET', 'jobs:report', `job-2:98:${ID}:${micros(14_000)}@${micros(12_000)}`, 'PX', '55000');
  const queue = [micros(11_000), `job-1:97:${ID}:3`, micros(10_500), `job-3:12:${ID}:5`];
  await send('ZADD', '{jobs:report}:queue', ...queue);
  const members = [String(now + 48_000), `semaphore:web-7:4121:${ID}:${micros(8_000)}`];
  const last = [String(now + 57_000), `semaphore:web-8:4200:${ID}:${micros(95_000)}`];
  await send('ZADD', 'orders:render', ...members, ...last);
  const ticket = `${micros(15_000)}:${now + 60_000}:${now + 60_000}:${now + 60_000}`;
  await send('HSET', '{orders:render}:waiters', `semaphore:web-9:77:${ID}:4`, ticket, 'permits', `2:${now}`);
  await send('HSET', 'stock:item:7', '8bfa1e76-70c1-4b13-9c53-7b3a3f6a2a0e:31', '1');
  await send('SET', 'redisson_lock_token:{stock:item:7}', '12');
  await send('PEXPIRE', 'stock:item:7', '27000');
  await send('SET', 'billing:42', '0b3c1b60-7d1e-4c0b-9f0e-2d1f7a1c9f11', 'PX', '58000');
  await send('SET', 'session:1', 'data of an application');
}

/** The time of a lock that was acquired 9 s ago. */
const microsNow = (): number => 1_000 * (Date.now() - 9_000);

/** Without what differs from run to run: times, and what depends on their width. */
function steady(output: string): string {
  return output
    .replace(/\d\d:\d\d:\d\d|@?\d{16}/g, '<time>')
    .replace(/\b\d+(ms|s|m|h)(\d+[sm])?\b/g, '<duration>')
    .replace(/\S*\u2026\S*/g, '<cut>')
    .replace(/ +/g, ' ')
    .replace(/ $/gm, '');
}

(hasScript() ? describePrivate : describe.skip)('docs/operations.md', () => {
  let server: Node;
  let folder: string;
  const names = new Map<string, string>();

  beforeAll(async () => {
    server = await untilTheEnd(Node.start());
    names.set(addressOf(server), '127.0.0.1:6379');
    folder = await mkdtemp(join(tmpdir(), 'redis-locks-'));
    atTheEnd(() => rm(folder, { recursive: true }));
    const program = `#!/bin/sh\nexec ${COMMAND.map((word) => `'${word}'`).join(' ')} "$@"\n`;
    await writeFile(join(folder, 'redis-locks'), program, { mode: 0o755 });
    await writeFile(join(folder, 'ship.sh'), '#!/bin/sh\necho shipped\n', { mode: 0o755 });
    await fill(server);
  });

  const addressOf = ({ address }: Pick<Node, 'address'>) => `${address.host}:${address.port}`;

  /** As it is called on the page. */
  const named = (output: string) => [...names].reduce((text, [known, name]) => text.replaceAll(known, name), output);
  const actual = (line: string) => [...names].reduce((text, [known, name]) => text.replaceAll(name, known), line);

  const start = (line: string): Program => {
    // A shell that isn't interactive ends by Ctrl-C with a code of its own: `watch` takes its place.
    const command = line.endsWith('watch') ? `exec ${actual(line)}` : actual(line);
    const quoted = `stty rows 24 cols 80 -echo; cd '${folder}'; PATH='${folder}':$PATH; ${command}`;
    const env = { REDIS_URL: `redis://${addressOf(server)}`, SHELL: '/bin/sh' };
    return new Program(['script', '-qec', quoted, '/dev/null'], env);
  };

  /** What a person sees. */
  const seen = (output: string) =>
    // biome-ignore lint/suspicious/noControlCharactersInRegex: it removes them
    named(output.replaceAll('\r', '').replace(/\u001b\[[\d;]*[a-zA-Z]/g, ''));

  const run = async (line: string): Promise<string> => {
    const started = start(line);
    if (line.endsWith('watch')) return watched(started);
    if (line.startsWith('redis-locks release')) {
      await until(() => started.stdout.includes('[y/N]'), LIMIT);
      started.child.stdin?.write('y\r');
      await started.ended;
      return seen(started.stdout);
    }
    await started.ended;
    return seen(started.stdout);
  };

  /** The screen after a renewal, a lock that came, and one that went. */
  const watched = async (watch: Program): Promise<string> => {
    const screen = () => watch.stdout.split('\u001b[H\u001b[2J').at(-2) ?? '';
    await until(() => screen().includes('stock:item:7'), LIMIT);
    await server.send('PEXPIRE', 'orders:order:42', '60000');
    await server.send('DEL', 'orders:invoice');
    await until(() => /invoice: free/.test(screen()) && /RENEWED/.test(screen()), LIMIT);
    await server.send('SET', 'orders:order:43', `web-9:77:${ID}:${1_000 * Date.now()}`, 'PX', '59000');
    await until(() => /order:43: taken/.test(screen()), LIMIT);
    const last = screen();
    watch.child.stdin?.write('\u0003');
    expect(await watch.ended).toBe(0);
    expect(last.split('\n').length).toBeLessThanOrEqual(24);
    return `${seen(last)}\n`;
  };

  /** Every line is as wide as the terminal at most, unless the output is piped. */
  const check = ({ line, output }: { line: string; output: string }, printed: string): void => {
    const isTooWide = (one: string) => one.length > 80 && !one.startsWith('redis-locks: ');
    if (!line.includes('|')) expect(printed.split('\n').filter(isTooWide)).toEqual([]);
    if (process.env.TRANSCRIPTS === 'write') {
      writeFileSync(
        PAGE,
        readFileSync(PAGE, 'utf8').replace(`$ ${line}\n${output}\`\`\``, `$ ${line}\n${printed}\`\`\``),
      );
    } else {
      expect(steady(printed)).toBe(steady(output));
    }
  };

  const ofOne = BLOCKS.filter(({ line }) => !/:70\d\d|:26379/.test(line));

  it.each(ofOne)('shows what is printed by $line', async (block) => {
    await fill(server);
    // What is said where the locks are in another database.
    if (block.output.includes('database 3')) await server.send('SWAPDB', '0', '3');
    check(block, await run(block.line));
  });

  it('shows what is printed about a cluster, one of whose servers is away', async () => {
    const cluster = await untilTheEnd(startCluster({ args: ['--cluster-require-full-coverage', 'no'] }));
    for (const [i, node] of cluster.masters.entries()) names.set(addressOf(node), `127.0.0.1:700${i + 1}`);
    const client = await cluster.connect();
    for (const order of [1, 2, 3, 4, 5, 6]) {
      await client.set(`orders:order:${order}`, `web-7:4121:${ID}:${microsNow()}`, { PX: 57_000 });
    }
    await (cluster.masters[2] as Node).kill();
    const blocks = BLOCKS.filter(({ line }) => line.includes(':7001'));
    expect(blocks).not.toEqual([]);
    for (const block of blocks) check(block, await run(block.line));
  });

  it('shows what is printed by way of a sentinel', async () => {
    const watched = await untilTheEnd(startSentinel());
    names.set(`${watched.sentinel.host}:${watched.sentinel.port}`, '127.0.0.1:26379');
    const [master] = watched.nodes as [Node];
    names.set(addressOf(master), '127.0.0.1:6380');
    await master.send('SET', 'orders:order:42', `web-7:4121:${ID}:${microsNow()}`, 'PX', '57000');
    const blocks = BLOCKS.filter(({ line }) => line.includes(':26379'));
    expect(blocks).not.toEqual([]);
    for (const block of blocks) check(block, await run(block.line));
  });
});
