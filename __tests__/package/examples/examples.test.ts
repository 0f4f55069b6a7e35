import { execFile } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { freePort } from '../../../support/free-port';
import { packInto } from '../../../support/pack';
import { type RedisServer, startRedis } from '../../../support/redis';
import { connectTo, describePrivate } from '../../support/private-redis';

const run = promisify(execFile);
const ROOT = join(__dirname, '../../..');
const EXAMPLES = join(ROOT, 'docs/examples');
/** Each example is copied and installed here, outside the project, where it finds no package but its own. */
const FOLDER = join(tmpdir(), 'redis-lock-registry-examples');

const NAMES = readdirSync(EXAMPLES, { withFileTypes: true })
  .filter((entry) => entry.isDirectory())
  .map(({ name }) => name);

/** ms; an install over a slow network, and a build. */
const LIMIT = 500_000;

describePrivate('The examples of docs/examples, with the package as it is packed', () => {
  let server: RedisServer;
  let tarball: string;

  beforeAll(async () => {
    mkdirSync(FOLDER, { recursive: true });
    tarball = await packInto(FOLDER);
    server = await startRedis({ port: true });
  });

  afterAll(async () => {
    await server.stop();
    rmSync(tarball, { force: true });
  });

  /** A copy of the example whose dependency is the packed package. */
  function copyOf(name: string): string {
    const copy = join(FOLDER, name);
    mkdirSync(copy, { recursive: true });
    for (const entry of readdirSync(copy)) if (entry !== 'node_modules') rmSync(join(copy, entry), { recursive: true });
    cpSync(join(EXAMPLES, name), copy, { recursive: true });
    rmSync(join(copy, 'node_modules/redis-lock-registry'), { recursive: true, force: true });
    const file = join(copy, 'package.json');
    const manifest = JSON.parse(readFileSync(file, 'utf8'));
    manifest.dependencies['redis-lock-registry'] = `file:${tarball}`;
    writeFileSync(file, JSON.stringify(manifest));
    return copy;
  }

  it.each(NAMES)('%s: its tests pass', async (name) => {
    const { address } = server;
    if ('path' in address) throw new Error('The examples need a Redis on TCP');
    const admin = await connectTo(address);
    await admin.flushAll();
    admin.destroy();
    const cwd = copyOf(name);
    await run('npm', ['install', '--no-audit', '--no-fund', '--loglevel=error'], { cwd, timeout: LIMIT });
    // The package, and not a link to this project.
    expect(existsSync(join(cwd, 'node_modules/redis-lock-registry/dist/index.js'))).toBe(true);
    const env = {
      ...process.env,
      REDIS_URL: `redis://${address.host}:${address.port}`,
      PORT: String(await freePort()),
      NEXT_TELEMETRY_DISABLED: '1',
      // Of jest; an application has none, or another.
      NODE_ENV: undefined,
      NODE_OPTIONS: undefined,
    };
    const tests = await run('npm', ['test'], { cwd, env, timeout: LIMIT }).catch((error) => error);
    // All of it would hide what failed.
    const last = `${tests.stdout}\n${tests.stderr}`.slice(-4_000);
    expect(last).toMatch(/^(#|ℹ) pass [1-9]/m);
    expect(last).toMatch(/^(#|ℹ) fail 0$/m);
    expect(tests.code).toBeUndefined();
  });
});
