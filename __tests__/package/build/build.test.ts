import { execFile } from 'node:child_process';
import { readdir, readFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { expect, it } from '@jest/globals';
import { build } from 'esbuild';
import manifest from '../../../package.json';
import { BUILT_PACKAGE, ifBuilt } from '../../support/built-package';
import { LOCK_TYPES } from '../../support/lock-types';
import { describePrivate, PrivateRedis } from '../../support/private-redis';

const run = promisify(execFile);

const dist = join(BUILT_PACKAGE, 'dist');

/** What a program prints as JSON, in a process of its own, which finds the built package by its name. */
async function printedBy(program: string, ...options: readonly string[]): Promise<unknown> {
  const { stdout } = await run(process.execPath, [...options, '-e', program], { cwd: dirname(dist) });
  return JSON.parse(stdout);
}

ifBuilt(it)('Every entry point has the same classes', async () => {
  const entries = Object.values(manifest.exports).flatMap((entry) => (typeof entry === 'string' ? [] : entry.default));
  const differing = await printedBy(`
    const all = ${JSON.stringify(entries)}.map((file) => require('${dirname(dist)}/' + file));
    const names = [...new Set(all.flatMap(Object.keys))];
    console.log(JSON.stringify(names.filter((name) => new Set(all.flatMap((entry) => entry[name] ?? [])).size !== 1)));`);
  expect(differing).toEqual([]);
});

/** What an entry point is for, and loads: NestJS adds the names of tslib. */
const LOADED: Record<string, string> = { './nestjs': '@nestjs/common' };

ifBuilt(it).each(Object.keys(manifest.exports).filter((entry) => entry !== './package.json'))(
  'Neither `require` nor `import` of the entry point %s adds a global variable',
  async (entry) => {
    const name = JSON.stringify(manifest.name + entry.slice(1));
    const added = await printedBy(`
      ${entry in LOADED ? `require('${LOADED[entry]}');` : ''}
      const before = new Set(Reflect.ownKeys(globalThis));
      require(${name});
      import(${name}).then(() => {
        const added = Reflect.ownKeys(globalThis).filter((key) => !before.has(key)).map(String);
        console.log(JSON.stringify(added));
      });`);
    expect(added).toEqual([]);
  },
);

ifBuilt(it)(
  'The file with the code of async-mutex begins with its licence, and nothing loads another copy of it',
  async () => {
    const [code, licence] = await Promise.all([
      readFile(join(dist, 'chunks/async-mutex.js'), 'utf8'),
      readFile(join(dirname(require.resolve('async-mutex/package.json')), 'LICENSE'), 'utf8'),
    ]);
    const [notice = ''] = code.split('*/');
    expect(notice.replaceAll(/^ \* ?/gm, '')).toContain(licence.trim());
    const loaded = await printedBy(`
    require('${dist}');
    console.log(JSON.stringify(Object.keys(require.cache).filter((file) => file.includes('async-mutex'))));`);
    expect(loaded).toEqual([join(dist, 'chunks/async-mutex.js')]);
  },
);

it('The package has no dependency that its users would install and that nothing loads', () => {
  expect(manifest).not.toHaveProperty('dependencies');
  expect(manifest.devDependencies).toHaveProperty('async-mutex');
});

it('The command line has the name of the package too: npx would run the package of another name, of anybody', () => {
  expect(manifest.bin).toEqual({
    'redis-lock-registry': manifest.bin['redis-locks'],
    'redis-locks': './dist/cli/main.js',
  });
});

ifBuilt(it)(
  'The built library can be read: lines of a width that people write, names, and comments in the types',
  async () => {
    const files = (await readdir(dist, { recursive: true })).filter((file) => file.endsWith('.js'));
    const texts = await Promise.all(files.map((file) => readFile(join(dist, file), 'utf8')));
    const lines = texts.flatMap((text) => text.split('\n'));
    expect(Math.max(...lines.map(({ length }) => length))).toBeLessThan(250);
    expect(texts.join('\n')).toMatch(/^class RedisLockRegistry extends core\.BackedLockRegistry \{$/m);
    const comment = ' * A registry of distributed locks on Redis: hands out one `RedisLock` for each key.';
    expect(lines).not.toContain(comment);
    expect(await readFile(join(dist, 'registry/redis-lock-registry.d.ts'), 'utf8')).toContain(comment);
  },
);

ifBuilt(it)(
  'The build reads what is set elsewhere: all waiters of a semaphore in memory enter when it gets more permits',
  async () => {
    const entered = await printedBy(`
    const { InMemoryLocks, InMemoryLockRegistry } = require('${dist}/testing');
    const locks = new InMemoryLocks();
    const semaphore = (permits) => new InMemoryLockRegistry({ locks }).semaphore('42', { permits });
    const entered = [semaphore(1).lock(), semaphore(1).lock()];
    setTimeout(async () => {
      const tried = await semaphore(3).tryLock();
      console.log(JSON.stringify(tried !== null && (await Promise.all(entered)).length));
      process.exit();
    }, 10);`);
    expect(entered).toBe(2);
  },
);

ifBuilt(it)('A stack trace names a function and a line that the package has', async () => {
  const stack = String(
    await printedBy(`
      const { RedisLockRegistry } = require('${dist}');
      try { new RedisLockRegistry({}, { registryKey: 'orders' }) } catch ({ stack }) { console.log(JSON.stringify(stack)) }`),
  );
  const [, file = '', line = 0] = /at new RedisLockRegistry \((.*\.js):(\d+):\d+\)/.exec(stack) ?? [];
  const code = await readFile(file, 'utf8');
  expect(code.split('\n')[Number(line) - 1]).toContain('throw new TypeError(describeWrongClient(client))');
  expect(code).not.toContain('sourceMappingURL');
});

ifBuilt(describePrivate)('The built library', () => {
  const redis = PrivateRedis.install();

  it('The package takes, hands over and inspects locks of every type', async () => {
    const outcomes = await printedBy(`
      const { createClient } = require('redis');
      const { RedisLockRegistry } = require('${dist}');
      const script = "return redis.call('PTTL', KEYS[1]) > 0 and 1";
      async function outcome(client, lockType) {
        const own = new RedisLockRegistry(client, { registryKey: lockType, lockType });
        const other = new RedisLockRegistry(client, { registryKey: lockType, lockType });
        const lease = await own.obtain('42').lock();
        const others = await other.obtain('42').tryLock();
        const waiting = other.run('42', (lease) => lease.eval(script, { keys: [lockType + ':42'] }));
        await lease.unlock();
        const ran = await waiting;
        const { held } = await own.obtain('42').inspect();
        await Promise.all([own.close(), other.close()]);
        return { others, ran, held };
      }
      async function main() {
        const client = await createClient({ socket: ${JSON.stringify(redis.address)} }).connect();
        console.log(JSON.stringify(await Promise.all(${JSON.stringify(LOCK_TYPES)}.map((type) => outcome(client, type)))));
        client.destroy();
      }
      main();`);
    expect(outcomes).toEqual(LOCK_TYPES.map(() => ({ others: null, ran: 1, held: false })));
  });

  /** The second program finds a server that knows all scripts, so that no NOSCRIPT says how its client reports an answer. */
  it.each(['redis', 'ioredis', 'iovalkey'])(
    'An application that is minified with %s has the error of its own script, and LeaseEvalError without an answer',
    async (name) => {
      const address = JSON.stringify(redis.address);
      const make =
        name === 'redis'
          ? `require('redis').createClient({ socket: ${address} })`
          : `new (require('${name}').default)({ ...${address}, autoResendUnfulfilledCommands: false })`;
      const contents = `
        const { LeaseEvalError, RedisLockRegistry } = require('${dist}');
        const { fromIoredis } = require('${dist}/ioredis');
        async function main() {
          const client = ${make}.on('error', () => undefined);
          await client.connect?.().catch(() => undefined);
          const registry = new RedisLockRegistry('${name}' === 'redis' ? client : fromIoredis(client), { registryKey: '${name}', onWarning: () => undefined });
          const said = (script) => registry.run('stock ' + process.pid, (lease) => lease.eval(script)).catch((error) => [error instanceof LeaseEvalError, error.message.slice(0, 8)]);
          const sold = await said("return redis.error_reply('sold out')");
          const losing = said("for i = 1, 5e7 do end");
          setTimeout(() => '${name}' === 'redis' ? client.destroy() : client.stream.destroy(), 50);
          console.log(JSON.stringify([sold, await losing]));
          process.exit();
        }
        main();`;
      const outfile = join(dist, `minified-${name}.js`);
      await build({
        stdin: { contents, resolveDir: __dirname },
        bundle: true,
        platform: 'node',
        minify: true,
        outfile,
        logLevel: 'error',
      });
      const program = `require(${JSON.stringify(outfile)})`;
      const outcome = [
        [false, 'sold out'],
        [true, 'The scri'],
      ];
      expect(await printedBy(program)).toEqual(outcome);
      expect(await printedBy(program)).toEqual(outcome);
    },
  );
});
