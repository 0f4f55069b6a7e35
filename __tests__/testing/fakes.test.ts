import { execFile } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { installEmbeddedRedis } from '../../support/embedded-redis/start';
import { ROOT } from '../package/readme/pages';
import { ProgramFolder } from '../package/readme/program-folder';
import { ifBuilt } from '../support/built-package';

const run = promisify(execFile);

/** What a user of ioredis would write, with two registries as of two processes. */
const PROGRAM = `
import { createRequire } from 'node:module';
import { RedisLockRegistry } from 'redis-lock-registry';
import { fromIoredis } from 'redis-lock-registry/ioredis';
const { createIoredisMock } = createRequire(process.env.FAKE)('js-redis-server');

const redis = await createIoredisMock();
for (const lockType of ['spin', 'pub-sub', 'fair']) {
  const options = { registryKey: lockType, lockType, fencing: true };
  const [one, two] = [1, 2].map(() => new RedisLockRegistry(fromIoredis(redis), options));
  const lease = await one.obtain('key').lock();
  const refused = await two.obtain('key').tryLock();
  const waiting = two.run('key', (next) => next.fencingToken > lease.fencingToken);
  await lease.unlock();
  const results = await Promise.all([one, two].map((each) => each.once('result', () => 'of one', { keepFor: 1_000 })));
  console.log(lockType, refused, await waiting, ...results);
  for (const registry of [one, two]) await registry.close();
}
redis.disconnect();
process.exit();
`;

/** In a process of its own: EVAL of the fake fails inside Jest's sandbox. */
ifBuilt(describe)('A fake of docs/testing.md', () => {
  let folder: ProgramFolder;

  beforeAll(async () => {
    installEmbeddedRedis();
    folder = await ProgramFolder.create('fakes');
  }, 180_000);

  afterAll(() => folder.remove());

  it('createIoredisMock() of js-redis-server works without a socket: spin, pub-sub and fair, with tokens and once', async () => {
    const file = join(folder.path, 'ioredis-mock.mjs');
    await writeFile(file, PROGRAM);
    const fake = createRequire(join(ROOT, 'support/embedded-redis/start.ts')).resolve('js-redis-server');
    const { stdout } = await run(process.execPath, [file], { timeout: 60_000, env: { ...process.env, FAKE: fake } });
    expect(stdout.trim().split('\n')).toEqual(
      ['spin', 'pub-sub', 'fair'].map((type) => `${type} null true of one of one`),
    );
  }, 70_000);
});
