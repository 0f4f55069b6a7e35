import { cp, mkdir, mkdtemp, rm, symlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from '@jest/globals';
import { builtPackage } from '../support/built-package';
import { type ClusterServers, startCluster } from '../support/cluster';
import { Node } from '../support/node';
import { atTheEnd, describePrivate } from '../support/private-redis';
import { Program } from '../support/program';
import { type SentinelServers, startSentinel } from '../support/sentinel';

const MODULES = join(__dirname, '../../node_modules');
const VALUE = 'web-7:AAAAAAAAAAAAAAAAAAAAAA:1';

/** The built package in a folder where only these packages are installed: by name, and what has them here. */
async function installedWith(packages: Readonly<Record<string, string>>): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'redis-locks-'));
  atTheEnd(() => rm(folder, { recursive: true }));
  const modules = join(folder, 'node_modules');
  await mkdir(modules);
  // Copied: Node looks for packages beside the real file.
  await cp(await builtPackage(), join(modules, 'redis-lock-registry'), { recursive: true });
  const all = { 'async-mutex': 'async-mutex', tslib: 'tslib', ...packages };
  for (const [name, as] of Object.entries(all)) await symlink(join(MODULES, as), join(modules, name));
  return join(modules, 'redis-lock-registry/dist/cli/main.js');
}

const CLIENTS = [
  ['redis 6', { redis: 'redis' }],
  ['ioredis 5', { ioredis: 'ioredis' }],
  ['ioredis 6', { ioredis: 'ioredis6' }],
  ['iovalkey', { iovalkey: 'iovalkey' }],
  ['redis 5', { redis: 'redis5' }],
] as const;

describePrivate('With one client installed, redis-locks', () => {
  let server: Node;
  let cluster: ClusterServers;
  let watched: SentinelServers;

  beforeAll(async () => {
    [server, cluster, watched] = await Promise.all([Node.start(), startCluster(), startSentinel()]);
    for (const servers of [server, cluster, watched]) atTheEnd(() => servers.stop());
    const onCluster = await cluster.connect();
    for (const key of ['a', 'b', 'c', 'd']) await onCluster.set(`orders:${key}`, VALUE, { PX: 3_600_000 });
    for (const node of [server, watched.nodes[0] as Node]) await node.send('SET', 'orders:a', VALUE, 'PX', '3600000');
  });

  const ask = async (main: string, args: string[]) => {
    const asked = new Program([process.execPath, main, ...args], {});
    const exitCode = await asked.ended;
    return [exitCode, asked.stderr, asked.stdout];
  };

  describe.each(CLIENTS)('%s', (_name, packages) => {
    let main: string;

    beforeAll(async () => {
      main = await installedWith(packages);
    });

    it.each([
      ['a server', 1, () => server.address],
      ['a cluster', 4, () => (cluster.masters[0] as Node).address],
      ['a sentinel', 1, () => watched.sentinel],
    ])('lists the locks of %s, and runs under one', async (_what, count, address) => {
      const url = `redis://${address().host}:${address().port}`;
      const [exitCode, stderr, stdout] = await ask(main, ['ls', '--registry-key', 'orders', '--json', '--url', url]);
      expect([exitCode, stderr]).toEqual([0, '']);
      const locks = String(stdout).trim().split('\n');
      expect(locks.map((line) => JSON.parse(line).holder)).toEqual(Array(count).fill('web-7'));
      const ran = await ask(main, ['run', 'nightly', '--url', url, '--', 'echo', 'ran']);
      expect(ran).toEqual([0, '', 'ran\n']);
    });

    it('says which masters a sentinel knows, when it is asked for another one', async () => {
      const url = `redis://${watched.sentinel.host}:${watched.sentinel.port}`;
      const [exitCode, stderr] = await ask(main, ['ls', '--sentinel', 'other', '--url', url]);
      expect([exitCode, stderr]).toEqual([64, expect.stringContaining(`knows ${watched.name}`)]);
      const ran = await ask(main, ['run', 'weekly', '--sentinel', watched.name, '--url', url, '--', 'echo', 'ran']);
      expect(ran).toEqual([0, '', 'ran\n']);
    });

    it('says that there is no server, and stops', async () => {
      const [exitCode, stderr] = await ask(main, ['ls', '--url', 'redis://127.0.0.1:1']);
      expect([exitCode, stderr]).toEqual([69, expect.stringMatching(/127\.0\.0\.1:1 cannot be reached: .*REFUSED/)]);
      const [code, message] = await ask(main, ['ls', '--url', 'redis://who:wrong@127.0.0.1:1']);
      expect([code, message]).toEqual([69, expect.not.stringContaining('wrong')]);
    });
  });

  it('says which to install when there is none', async () => {
    const main = await installedWith({});
    const [exitCode, stderr] = await ask(main, ['ls']);
    expect([exitCode, stderr]).toEqual([69, 'redis-locks: A client is missing: npm install redis, or ioredis\n']);
    const [helps] = await ask(main, ['--help']);
    expect(helps).toBe(0);
  });
});
