import { afterEach, beforeAll, expect, it } from '@jest/globals';
import { RedisLockRegistry } from '../../../lib';
import { codeSpans, tableBelow } from '../../package/readme/pages';
import { startCluster } from '../../support/cluster';
import { NOTIFIED_TYPES } from '../../support/lock-types';
import { Node } from '../../support/node';
import { describePrivate, untilTheEnd } from '../../support/private-redis';
import { Program } from '../../support/program';
import { coded } from '../../support/since';
import { until } from '../../support/until';
import { ask, COMMAND } from './command';

const TABLE = tableBelow('docs/operations.md', 'Rights').map((cells) =>
  cells.map((cell) => codeSpans(cell).flatMap((span) => span.split(' '))),
);
const rulesOf = (row: number, column: number) => (TABLE[row]?.[column] ?? []).filter((word) => /^[~+&]/.test(word));

const LOOKING = rulesOf(0, 1);
const MORE = rulesOf(0, 2);
const ON_A_CLUSTER = rulesOf(1, 1);

/** With `registryKey: 'orders'`. */
const ofType = (name: string) =>
  tableBelow('docs/operations.md', 'ACL rules')
    .filter(([type = '']) => codeSpans(type)[0] === name)
    .flatMap(([, rules = '', fencing = '']) => [...codeSpans(rules), ...codeSpans(fencing)].join(' ').split(' '));

/** What node-redis needs to connect. It also sends its name by CLIENT, and goes on when that is denied. */
const OF_NODE_REDIS = '+hello';

describePrivate('The rights in docs/operations.md', () => {
  let server: Node;
  const registries: RedisLockRegistry[] = [];

  beforeAll(async () => {
    server = await untilTheEnd(Node.start());
  });

  afterEach(async () => {
    await Promise.all(registries.splice(0).map((registry) => registry.close({ timeout: 0 })));
    await server.send('FLUSHALL');
  });

  const permit = async (node: Node, user: string, rules: readonly string[]): Promise<{ REDIS_URL: string }> => {
    const all = ['on', '>secret', 'resetkeys', 'resetchannels', '-@all', OF_NODE_REDIS, ...rules];
    await node.send('ACL', 'SETUSER', user, ...all);
    await node.send('ACL', 'LOG', 'RESET');
    await node.send('CONFIG', 'RESETSTAT');
    return { REDIS_URL: `redis://${user}:secret@${node.address.host}:${node.address.port}` };
  };

  const denied = async (node: Node): Promise<string[]> => {
    const entries = (await node.send('ACL', 'LOG')) as { object: string }[];
    return entries.map(({ object }) => object).filter((object) => !object.startsWith('client'));
  };

  /** A lock of each format, with somebody who waits for it. */
  const hold = async (): Promise<void> => {
    const client = await server.admin();
    const waiting = NOTIFIED_TYPES.flatMap((lockType) => {
      const open = () => new RedisLockRegistry(client, { registryKey: lockType, lockType, fencing: true });
      const both = [open(), open()] as const;
      registries.push(...both);
      return [
        both.map((registry) => registry.obtain('key')),
        both.map((registry) => registry.semaphore('permits', { permits: 1 })),
      ].map(async ([held, waited]) => {
        await held?.lock();
        waited?.lock().catch(() => undefined);
        await until(async () => ((await waited?.inspect())?.waiting ?? 0) > 0, { within: 20_000 });
      });
    });
    await Promise.all(waiting);
  };

  it('are enough to look, and none of them is too much', async () => {
    await hold();
    const env = await permit(server, 'oncall', [...LOOKING, ...MORE]);
    const [list, one] = [await ask(['ls', '--json'], env), await ask(['inspect', 'fair:key'], env)];
    expect([list.exitCode, list.stderr, one.exitCode, one.stderr]).toEqual([0, '', 0, '']);
    const locks = list.stdout.trim().split('\n');
    expect(locks.filter((line) => JSON.parse(line).waiting === 1)).toHaveLength(8);
    expect(await denied(server)).toEqual([]);
    const used = String(await server.send('INFO', 'commandstats'));
    const commands = [...LOOKING, ...MORE].filter((rule) => rule.startsWith('+'));
    expect(commands.filter((rule) => !new RegExp(`^cmdstat_${rule.slice(1)}[:|]`, 'm').test(used))).toEqual([]);
  });

  it('without those that a user should have, still find every lock', async () => {
    await hold();
    const env = await permit(server, 'less', LOOKING);
    const { exitCode, stdout, stderr } = await ask(['ls', '--json'], env);
    expect([exitCode, stderr, stdout.trim().split('\n').length]).toEqual([0, '', 8]);
  });

  it('on a part of the keys give a part of the answer, which says so', async () => {
    await hold();
    for (const more of [[], MORE]) {
      const env = await permit(server, 'part', ['~fair:*', ...LOOKING.filter((rule) => rule !== '~*'), ...more]);
      const { exitCode, stdout, stderr } = await ask(['ls'], env);
      expect([exitCode, stderr]).toEqual([76, expect.stringContaining('NOPERM')]);
      expect(stdout).toContain('fair:key');
      // Another one of this name may be in the part that is not seen.
      const release = await ask(['release', 'fair:key', '--yes'], env);
      expect([release.exitCode, release.stderr]).toEqual([76, expect.stringContaining('Nothing was released')]);
    }
  });

  it('that are taken away while `watch` looks make no lock free', async () => {
    const owner = `web-7:${'A'.repeat(22)}:1`;
    for (const name of ['fair:a', 'fair:b', 'other:c']) await server.send('SET', name, owner, 'PX', '600000');
    const rules = LOOKING.filter((rule) => rule !== '~*');
    const env = await permit(server, 'watching', ['~*', ...rules]);
    const watch = new Program([...COMMAND, 'watch', '--json', '--interval', '50ms'], env);
    const frees = () => watch.lines.map((line) => JSON.parse(line)).filter(({ what }) => what === 'free');
    const missed = () => watch.stderr.split('NOPERM').length - 1;
    const looks = async () =>
      Number(/cmdstat_time:calls=(\d+)/.exec(String(await server.send('INFO', 'commandstats')))?.[1]);
    try {
      await until(async () => (await looks()) > 1, { within: 20_000 });
      await server.send('ACL', 'SETUSER', 'watching', 'resetkeys', '~fair:*');
      await until(() => missed() > 0, { within: 20_000 });
      await server.send('ACL', 'SETUSER', 'watching', '~*');
      await server.send('DEL', 'fair:a');
      await until(() => frees().some(({ lock }) => lock === 'fair:a'), { within: 20_000 });
      expect(frees().map(({ lock }) => lock)).toEqual(['fair:a']);
    } finally {
      watch.child.kill('SIGINT');
      await watch.ended;
    }
  });

  it('are enough to release a lock, and to run under one', async () => {
    const held = new RedisLockRegistry(await server.admin(), { registryKey: 'orders', lockType: 'pub-sub' });
    registries.push(held);
    await held.obtain('key').lock();
    const others = ofType('pub-sub').filter((rule) => !rule.startsWith('~')); // its keys are among all
    const releasing = await permit(server, 'releasing', [...LOOKING, ...MORE, ...others]);
    const released = await ask(['release', 'orders:key', '--yes'], releasing);
    expect([released.exitCode, released.stderr, await denied(server)]).toEqual([0, '', []]);
    const running = await permit(server, 'running', [...ofType('spin'), '+info']);
    const ran = await ask(['run', 'key', '--registry-key', 'orders', '--', 'echo', 'ran'], running);
    expect([ran.exitCode, ran.stderr, ran.stdout, await denied(server)]).toEqual([0, '', 'ran\n', []]);
  });

  it('are said to be missing, and that nothing was released; and that a replica releases nothing', async () => {
    await hold();
    const looking = await permit(server, 'looking', [...LOOKING, ...MORE]);
    const { host, port } = server.address;
    const replica = await untilTheEnd(Node.start('--replicaof', host, String(port)));
    await until(async () => Number(await replica.send('EXISTS', 'pub-sub:key')) === 1, { within: 20_000 });
    const { address } = replica;
    const onReplica = { REDIS_URL: `redis://${address.host}:${address.port}` };
    for (const [env, code] of [
      [looking, 'NOPERM'],
      [onReplica, 'READONLY'],
    ] as const) {
      const refused = await ask(['release', 'pub-sub:key', '--yes'], env);
      const said = new RegExp(`^redis-locks: Lock "pub-sub:key" was not unlocked by force: ${coded(code)} .*\\n$`);
      expect([refused.exitCode, refused.stdout, refused.stderr]).toEqual([69, '', expect.stringMatching(said)]);
    }
    expect(await server.send('EXISTS', 'pub-sub:key')).toBe(1);
  });

  it('are enough on a cluster', async () => {
    const cluster = await untilTheEnd(startCluster());
    const rules = [...LOOKING, ...MORE, ...ON_A_CLUSTER];
    const [env] = await Promise.all(cluster.masters.map((node) => permit(node, 'oncall', rules)));
    const client = await cluster.connect();
    const value = 'web-7:AAAAAAAAAAAAAAAAAAAAAA:1';
    for (const key of ['a', 'b', 'c', 'd']) await client.set(`orders:${key}`, value, { PX: 600_000 });
    const { exitCode, stdout, stderr } = await ask(['ls', '--cluster', '--json'], env);
    expect([exitCode, stderr, stdout.trim().split('\n').length]).toEqual([0, '', 4]);
  });
});
