import { execFile } from 'node:child_process';
import { mkdir, rm, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { installLockedPackages } from '../../../support/npm-install';
import { type RedisServer, startRedis } from '../../../support/redis';
import { BUILT_PACKAGE } from '../../support/built-package';
import { describePrivate } from '../../support/private-redis';
import { ROOT, tableBelow } from './pages';
import { programsOf, promisedOutput, withRedis } from './programs';

const run = promisify(execFile);

/** The old libraries are those that the benchmarks run, in versions that are locked. */
const PACKAGES = join(ROOT, 'scripts/bench');
const FOLDER = join(PACKAGES, 'node_modules/.cache/coming-from');

const PROGRAMS = programsOf('docs/coming-from.md');
/** Each program of an old library, or of a version of it, and the next one of this library, which does the same here. */
const PAIRS = PROGRAMS.flatMap((before, i) => {
  const after = PROGRAMS.slice(i).find(({ mark }) => mark === undefined);
  return before.mark === 'before' && after !== undefined ? [{ line: before.line, before, after }] : [];
});

/** Programs in which processes of both run at the same time. */
const BOTH = PROGRAMS.filter(({ mark }) => mark === 'both');

describePrivate('docs/coming-from.md', () => {
  let server: RedisServer;

  beforeAll(async () => {
    installLockedPackages(PACKAGES, 'Installing the libraries that readers come from, once …');
    server = await startRedis({ port: true });
    await rm(FOLDER, { recursive: true, force: true });
    await mkdir(join(FOLDER, 'node_modules'), { recursive: true });
    await symlink(BUILT_PACKAGE, join(FOLDER, 'node_modules/redis-lock-registry'));
  });

  afterAll(async () => {
    await server.stop();
    await rm(FOLDER, { recursive: true, force: true });
  });

  async function outputOf(name: string, code: string): Promise<string[]> {
    const { address } = server;
    if ('path' in address) throw new Error('The programs need a Redis on TCP');
    const file = join(FOLDER, `${name}.mjs`);
    // Two versions of a package have two names here.
    await writeFile(file, withRedis(code, address).replace("'redlock'; // 4", "'redlock4';"));
    const { stdout } = await run(process.execPath, [file], { timeout: 30_000 });
    return stdout.trim().split('\n');
  }

  it('docs/coming-from.md has programs of several libraries', () => {
    expect(PAIRS.length).toBeGreaterThan(2);
  });

  it.each(PAIRS)(
    'docs/coming-from.md line $line: the program of the old library prints what it says, as the one after it does',
    async (pair) => {
      const { line, before, after } = pair;
      expect(await outputOf(`before-${line}`, before.code)).toEqual(promisedOutput(before));
      // That the program after it prints what it says is asserted by programs.test.ts.
      expect(promisedOutput(after)).toEqual(promisedOutput(before));
    },
  );

  it.each(BOTH)(
    'docs/coming-from.md line $line: the program of the old library and this one prints what it says',
    async (both) => {
      expect(await outputOf(`both-${both.line}`, both.code)).toEqual(promisedOutput(both));
    },
  );

  it('docs/coming-from.md has a program for each library whose locks are shared', () => {
    const names = tableBelow('docs/coming-from.md', 'Change over without a stop').map(([old]) => old?.split(' ')[0]);
    expect(names).toHaveLength(BOTH.length - 1); // two versions of redlock
    for (const name of names) expect(BOTH.some(({ code }) => code.includes(name as string))).toBe(true);
  });

  it('docs/coming-from.md gives the defaults that the old libraries have', async () => {
    const program = `
      import Redlock from 'redlock';
      import { defaultTimeoutOptions } from 'redis-semaphore';
      import { createLock, MemoryAdapter } from 'redlock-universal';
      const { settings } = new Redlock([{ once() {}, on() {} }]);
      const { ttl, retryAttempts, retryDelay } = createLock({ adapter: new MemoryAdapter(), key: 'key' });
      console.log(JSON.stringify({ redlock: settings, semaphore: defaultTimeoutOptions, universal: { ttl, retryAttempts, retryDelay } }));
      process.exit();
    `;
    const [printed = ''] = await outputOf('defaults', program);
    const { redlock, semaphore, universal } = JSON.parse(printed);
    const rows = Object.fromEntries(
      tableBelow('docs/coming-from.md', 'Differing defaults').map(([name, ...cells]) => [name, cells]),
    );
    const s = (ms: number): string => `${ms / 1_000} s`;
    expect(rows['a caller waits for']?.slice(0, 3)).toEqual([
      `${redlock.retryCount} tries, ${redlock.retryDelay} ms apart (about 2 s)`,
      s(semaphore.acquireTimeout),
      `${universal.retryAttempts} tries, ${universal.retryDelay} ms apart`,
    ]);
    expect(rows['a waiter polls every']?.slice(0, 3)).toEqual([
      `${redlock.retryDelay} ms ± ${redlock.retryJitter}`,
      `${semaphore.retryInterval} ms`,
      `${universal.retryDelay} ms`,
    ]);
    expect(rows.ttl?.slice(1, 3)).toEqual([s(semaphore.lockTimeout), s(universal.ttl)]);
  });
});
