import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { parse } from 'luaparse';
import type { LockType } from '../../lib';
import { startRedis } from '../../scripts/redis';
import { atTheEnd, describePrivate } from '../support/private-redis';
import { BuiltLibrary, printedBy, TYPESCRIPT } from './built-library';

const LIB = join(__dirname, '../../lib');

/** The entry points of one lock type, and their registries. */
const ONE_TYPE = Object.entries({
  spin: 'SpinLockRegistry',
  'pub-sub': 'PubSubLockRegistry',
  fair: 'FairLockRegistry',
  redisson: 'RedissonLockRegistry',
  'redisson-fair': 'RedissonFairLockRegistry',
} satisfies Record<LockType, string>);

/** The text of every script that is there when every lock type has been loaded: each gets its digest then. */
async function scriptsOf(file: string): Promise<string[]> {
  return (await printedBy(
    `
    const crypto = require('node:crypto');
    const { createHash } = crypto;
    const scripts = [];
    crypto.createHash = (algorithm) => {
      const hash = createHash(algorithm);
      return { update: (text) => (scripts.push(text), hash.update(text)) };
    };
    const { RedisLockRegistry } = require('${file}');
    const client = { eval: async () => 1, evalSha: async () => 1 };
    for (const lockType of ${JSON.stringify(ONE_TYPE.map(([name]) => name))}) {
      new RedisLockRegistry(client, { registryKey: 'orders', lockType });
    }
    console.log(JSON.stringify(scripts));`,
    file.endsWith('.js') ? [] : TYPESCRIPT,
  )) as string[];
}

/** What a script means to a server: all but its comments and its white space. */
function meaning(script: string): string {
  return JSON.stringify(parse(script, { comments: false, luaVersion: '5.1' }));
}

let built: BuiltLibrary;

beforeAll(async () => {
  built = await BuiltLibrary.create('build-test');
}, 120_000);

afterAll(() => built.remove());

it('Every script of the built library is the one that the other tests run, without comments and indentation', async () => {
  const [sources, scripts] = await Promise.all([scriptsOf(LIB), scriptsOf(join(built.path, 'index.js'))]);
  expect(scripts.length).toBeGreaterThan(40);
  expect(scripts.map(meaning).sort()).toEqual(sources.map(meaning).sort());
  expect(scripts.filter((script) => /^\s*--|^ /m.test(script))).toEqual([]);
});

it('Every entry point has the same classes', async () => {
  const files = ['index', 'ioredis/index', 'testing/index', ...ONE_TYPE.map(([name]) => `one-type/${name}`)];
  const classes = await printedBy(`
    const all = ${JSON.stringify(files)}.map((file) => require('${built.path}/' + file));
    const names = [...new Set(all.flatMap(Object.keys))];
    const differing = names.filter((name) => new Set(all.flatMap((entry) => entry[name] ?? [])).size !== 1);
    const { LockRegistry } = all[0];
    const registries = all.flatMap(Object.values).filter((value) => LockRegistry.isPrototypeOf(value));
    console.log(JSON.stringify([differing, [...new Set(registries)].map(({ name }) => name).sort()]));`);
  const registries = ['InMemoryLockRegistry', 'RedisLockRegistry', ...ONE_TYPE.map(([, name]) => name)];
  expect(classes).toEqual([[], registries.sort()]);
});

/** The lock types that are loaded by then, and whether locks made of others are. */
async function loadedBy(program: string): Promise<{ types: string[]; kinds: boolean }> {
  const loaded = (await printedBy(`
    const client = { eval: async () => 1, evalSha: async () => 1 };
    ${program}
    console.log(JSON.stringify(Object.keys(require.cache).filter((file) => file.startsWith('${built.path}'))));`)) as string[];
  const types = loaded.flatMap((file) => /chunks\/([\w-]+)-type\.js$/.exec(file)?.[1] ?? []);
  return { types, kinds: loaded.some((file) => file.includes('lock-kinds')) };
}

it('The main entry point loads a lock type when the first registry of it is made', async () => {
  const main = `const { RedisLockRegistry } = require('${built.path}');`;
  expect((await loadedBy(main)).types).toEqual([]);
  const use = `${main} new RedisLockRegistry(client, { registryKey: 'orders', lockType: 'fair' });`;
  expect((await loadedBy(use)).types).toEqual(['fair']);
});

it.each(ONE_TYPE.map(([name]) => name))('The entry point of %s loads nothing of other types', async (name) => {
  expect(await loadedBy(`require('${built.path}/one-type/${name}');`)).toEqual({ types: [name], kinds: false });
});

describePrivate('The built library', () => {
  it('has registries of one type that share their locks with the main one', async () => {
    const server = await startRedis({ port: true });
    atTheEnd(() => server.stop());
    const { host, port } = server.address as { host: string; port: number };
    const outcomes = await printedBy(`
      const { createClient } = require('redis');
      const { RedisLockRegistry } = require('${built.path}');
      const script = "return redis.call('PTTL', KEYS[1]) > 0 and 1";
      async function outcome(client, lockType, className) {
        const Registry = require('${built.path}/one-type/' + lockType)[className];
        const options = { registryKey: lockType };
        const own = new Registry(client, options);
        const main = new RedisLockRegistry(client, { ...options, lockType });
        const lease = await own.obtain('42').lock();
        const others = await main.obtain('42').tryLock();
        const waiting = main.run('42', (lease) => lease.eval(script, { keys: [lockType + ':42'] }));
        await lease.unlock();
        const ran = await waiting;
        const { held } = await own.obtain('42').inspect();
        await Promise.all([own.close(), main.close()]);
        return [lockType, { others, ran, held }];
      }
      async function main() {
        const client = await createClient({ url: 'redis://${host}:${port}' }).connect();
        const types = ${JSON.stringify(ONE_TYPE)};
        const outcomes = await Promise.all(types.map(([name, registry]) => outcome(client, name, registry)));
        client.destroy();
        console.log(JSON.stringify(outcomes));
      }
      main();`);
    expect(outcomes).toEqual(ONE_TYPE.map(([name]) => [name, { others: null, ran: 1, held: false }]));
  });
});
