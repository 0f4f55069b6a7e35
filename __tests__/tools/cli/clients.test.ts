import { execFileSync, spawnSync } from 'node:child_process';
import { cp, mkdir, mkdtemp, rm, symlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from '@jest/globals';
import { findRedisBinary } from '../../../support/redis-binary';
import { BUILT_PACKAGE, ifBuilt } from '../../support/built-package';
import { type ClusterServers, startCluster } from '../../support/cluster';
import { Node } from '../../support/node';
import { atTheEnd, describePrivate, untilTheEnd } from '../../support/private-redis';
import { type SentinelServers, startSentinel } from '../../support/sentinel';
import { ask, linesOf } from './command';

const MODULES = join(__dirname, '../../../node_modules');
const VALUE = 'web-7:AAAAAAAAAAAAAAAAAAAAAA:1';
const RAN = { exitCode: 0, stderr: '', stdout: 'ran\n' };

/** The built package in a folder where only these packages are installed: by name, and what has them here. */
async function installedWith(packages: Readonly<Record<string, string>>): Promise<string[]> {
  const folder = await mkdtemp(join(tmpdir(), 'redis-locks-'));
  atTheEnd(() => rm(folder, { recursive: true }));
  const modules = join(folder, 'node_modules');
  await mkdir(modules);
  // Copied: Node looks for packages beside the real file.
  await cp(BUILT_PACKAGE, join(modules, 'redis-lock-registry'), { recursive: true });
  for (const [name, as] of Object.entries(packages)) await symlink(join(MODULES, as), join(modules, name));
  return [process.execPath, join(modules, 'redis-lock-registry/dist/cli/main.js')];
}

const CLIENTS = [
  ['redis 6', { redis: 'redis' }],
  ['ioredis 5', { ioredis: 'ioredis' }],
  ['ioredis 6', { ioredis: 'ioredis6' }],
  ['iovalkey', { iovalkey: 'iovalkey' }],
  ['redis 5', { redis: 'redis5' }],
] as const;

/** Whether the server and OpenSSL can do what `certificate` is for. */
function hasTls(): boolean {
  const started = spawnSync(findRedisBinary() ?? 'redis-server', ['--port', '0', '--tls-port', '0'], {
    encoding: 'utf8',
    timeout: 60_000,
  });
  return /not listen anywhere/.test(started.stdout ?? '') && spawnSync('openssl', ['version']).error === undefined;
}

/** The files of a certificate that is of its own authority, and of its key. */
async function certificate(): Promise<{ cert: string; key: string }> {
  const folder = await mkdtemp(join(tmpdir(), 'redis-locks-'));
  atTheEnd(() => rm(folder, { recursive: true }));
  const files = { cert: join(folder, 'cert.pem'), key: join(folder, 'key.pem') };
  const made = ['req', '-x509', '-newkey', 'rsa:2048', '-nodes', '-subj', '/CN=test'];
  const named = ['-addext', 'subjectAltName=IP:127.0.0.1', '-keyout', files.key, '-out', files.cert];
  execFileSync('openssl', [...made, ...named], { stdio: 'pipe' });
  return files;
}

ifBuilt(describePrivate)('With one client installed, redis-locks', () => {
  let server: Node;
  let cluster: ClusterServers;
  let watched: SentinelServers;

  beforeAll(async () => {
    const starting = [untilTheEnd(Node.start()), untilTheEnd(startCluster()), untilTheEnd(startSentinel())] as const;
    [server, cluster, watched] = await Promise.all(starting);
    const onCluster = await cluster.connect();
    for (const key of ['a', 'b', 'c', 'd']) await onCluster.set(`orders:${key}`, VALUE, { PX: 3_600_000 });
    for (const node of [server, watched.nodes[0] as Node]) await node.send('SET', 'orders:a', VALUE, 'PX', '3600000');
  });

  describe.each(CLIENTS)('%s', (_name, packages) => {
    let main: string[];

    beforeAll(async () => {
      main = await installedWith(packages);
    });

    it.each([
      ['a server', 1, () => server.address],
      ['a cluster', 4, () => (cluster.masters[0] as Node).address],
      ['a sentinel', 1, () => watched.sentinel],
    ])('lists the locks of %s, and runs under one', async (_what, count, address) => {
      const env = { REDIS_URL: `redis://${address().host}:${address().port}` };
      const listed = await ask(['ls', '--registry-key', 'orders', '--json'], env, main);
      expect(listed).toMatchObject({ exitCode: 0, stderr: '' });
      expect(linesOf(listed).map(({ holder }) => holder)).toEqual(Array(count).fill('web-7'));
      expect(await ask(['run', 'nightly', '--', 'echo', 'ran'], env, main)).toEqual(RAN);
    });

    it('says which masters a sentinel knows, when it is asked for another one', async () => {
      const env = { REDIS_URL: `redis://${watched.sentinel.host}:${watched.sentinel.port}` };
      const other = await ask(['ls', '--sentinel', 'other'], env, main);
      expect(other).toMatchObject({ exitCode: 64, stderr: expect.stringContaining(`knows ${watched.name}`) });
      expect(await ask(['run', 'weekly', '--sentinel', watched.name, '--', 'echo', 'ran'], env, main)).toEqual(RAN);
    });

    it('says that there is no server, and stops', async () => {
      const urls = ['redis://who:wrong@127.0.0.1:1', 'redis://[::1]:1'];
      const [four, six] = await Promise.all(urls.map((url) => ask(['ls', '--url', url], {}, main)));
      const refused = expect.stringMatching(/127\.0\.0\.1:1 cannot be reached: .*REFUSED/);
      expect(four).toMatchObject({ exitCode: 69, stderr: refused });
      expect(four?.stderr).not.toContain('wrong');
      // The machine may have no IPv6.
      expect(six).toMatchObject({
        exitCode: 69,
        stderr: expect.stringContaining('[::1]:1 cannot be reached: connect '),
      });
    });
  });

  (hasTls() ? describe : describe.skip)('by TLS', () => {
    const env: NodeJS.ProcessEnv = {};

    beforeAll(async () => {
      const { cert, key } = await certificate();
      const files = [
        ['tls-cert-file', cert],
        ['tls-key-file', key],
        ['tls-ca-cert-file', cert],
      ] as const;
      const tls = [...files, ['tls-auth-clients', 'no'], ['tls-replication', 'yes']] as const;
      const encrypted = await untilTheEnd(startSentinel({ tls }));
      env.REDIS_URL = `rediss://127.0.0.1:${encrypted.tlsPort}`;
      env.NODE_EXTRA_CA_CERTS = cert;
    });

    it.each(CLIENTS)('%s asks a sentinel, and the master that it names', async (_name, packages) => {
      expect(await ask(['run', 'nightly', '--', 'echo', 'ran'], env, await installedWith(packages))).toEqual(RAN);
    });
  });

  it('says which to install when there is none', async () => {
    const main = await installedWith({});
    const { exitCode, stderr } = await ask(['ls'], {}, main);
    expect([exitCode, stderr]).toEqual([69, 'redis-locks: A client is missing: npm install redis, or ioredis\n']);
    expect(await ask(['--help'], {}, main)).toMatchObject({ exitCode: 0 });
  });
});
