import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import { expect, it } from '@jest/globals';
import type { Lease, RedisLockRegistry, RedisLockRegistryOptions } from '../../../lib';
import manifest from '../../../package.json';
import { allScripts } from '../../../support/all-scripts';
import { LOCK_TYPES } from '../../support/lock-types';
import { type Monitor, type MonitoredCommand, startMonitor } from '../../support/monitor';
import { atTheEnd, describePrivate, PrivateRedis } from '../../support/private-redis';
import { createRegistry } from '../../support/test-registry';
import { until } from '../../support/until';
import { PublicTypes } from './public-types';

/*
 * What others than this repository know of the library: the bytes of its scripts, which servers and ACL rules name by their
 * digests; the names of its keys and channels, which other versions and other libraries share; its types, with which
 * applications are compiled. A change of how the code is arranged changes none of it. UNCHANGED=write writes the file anew.
 */

const FILE = join(__dirname, 'unchanged.json');
const ROOT = join(__dirname, '../../..');
const COMMAND = 'UNCHANGED=write npx jest __tests__/package/build/unchanged.test.ts';
const run = promisify(execFile);

/** ms after which a waiter has done all that it does while it waits. */
const WAITS_LONG = 500;

/** Names or digests, by what they are of. */
type Part = Readonly<Record<string, readonly string[]>>;

/** Compares a part of the file with what is so now. */
async function compare(part: string, now: Part): Promise<void> {
  const all: Record<string, Part> = JSON.parse(await readFile(FILE, 'utf8').catch(() => '{}'));
  if (process.env.UNCHANGED === 'write') {
    await writeFile(FILE, written({ ...all, [part]: now }));
    return;
  }
  const before = all[part] ?? {};
  const names = [...new Set([...Object.keys(before), ...Object.keys(now)])];
  const lines = names.flatMap((name) =>
    differences(before[name] ?? [], now[name] ?? []).map((line) => `  ${name}: ${line}`),
  );
  if (lines.length === 0) return;
  throw new Error(
    `Others than this repository see a change of ${part}:\n${lines.join('\n')}\n\n` +
      `If it is not wanted, undo it. If it is wanted, say why in the commit, and write it down: ${COMMAND}`,
  );
}

/** With a line for each name. */
function written(all: Readonly<Record<string, Part>>): string {
  const parts = Object.entries(all).map(([part, names]) => {
    const lines = Object.entries(names).map(
      ([name, values]) => `    ${JSON.stringify(name)}: ${JSON.stringify(values)}`,
    );
    return `  ${JSON.stringify(part)}: {\n${lines.join(',\n')}\n  }`;
  });
  return `{\n${parts.join(',\n')}\n}\n`;
}

function differences(before: readonly string[], now: readonly string[]): string[] {
  const without = (some: readonly string[], others: readonly string[]) => some.filter((one) => !others.includes(one));
  return [
    ...without(before, now).map((one) => `${one} is gone`),
    ...without(now, before).map((one) => `${one} is new`),
  ];
}

it('Each script is the one that was written down, byte by byte', async () => {
  const digests: Record<string, string[]> = {};
  for (const { name, sha1 } of allScripts()) digests[name] = [...(digests[name] ?? []), sha1];
  const names = Object.keys(digests).sort();
  await compare('the scripts', Object.fromEntries(names.map((name) => [name, digests[name] ?? []])));
});

it('The public types are those that were written down', async () => {
  // Inside the project, so that tsc finds its packages.
  const folder = await mkdtemp(join(process.env.TEST_RUN as string, 'types-'));
  const options = ['--module', 'esnext', '--moduleResolution', 'bundler', '--emitDeclarationOnly', '--noCheck'];
  await run(join(ROOT, 'node_modules/.bin/tsc'), ['-p', ROOT, ...options, '--declarationDir', folder]);
  const entries = Object.entries(manifest.exports).flatMap(([name, target]) =>
    typeof target === 'string' ? [] : [[name, join(folder, target.types.replace('./dist/', ''))] as const],
  );
  const types = new PublicTypes();
  await compare('the entry points', Object.fromEntries(entries.map(([name, file]) => [name, types.namesOf(file)])));
  await compare('the types', types.digests(entries.map(([, file]) => file)));
  await rm(folder, { recursive: true });
});

/** What clients pass to scripts as KEYS. */
function keysIn(commands: readonly MonitoredCommand[]): string[] {
  const scripts = commands.filter(({ name }) => name === 'EVAL' || name === 'EVALSHA');
  return scripts.flatMap(({ args: [, count, ...rest] }) => rest.slice(0, Number(count)));
}

/** What is subscribed, and published by a client or a script. */
function channelsIn(commands: readonly MonitoredCommand[]): string[] {
  return commands.flatMap(({ name, args }) => {
    if (/^S?PUBLISH$/.test(name)) return args.slice(0, 1);
    return /^[PS]?SUBSCRIBE$/.test(name) ? args : [];
  });
}

/** The digests of what `lease.eval` and `once` send. */
function othersScripts(commands: readonly MonitoredCommand[]): string[] {
  const own = new Set(allScripts().map(({ source }) => source));
  const texts = commands.flatMap(({ name, args: [text = ''] }) => (name === 'EVAL' && !own.has(text) ? [text] : []));
  return texts.map((text) => createHash('sha1').update(text).digest('hex'));
}

/** Without the parts that differ from run to run. */
function distinct(names: readonly string[]): string[] {
  const steady = names.map((name) =>
    name
      .replaceAll(/test[:/][\w:/-]*?[\w-]{22}(:\d+)?/g, '<owner>')
      .replace(/^([\w-]+:).*:@[\da-f-]{36}$/, '$1<a key>:@<id>'),
  );
  return [...new Set(steady)].sort();
}

describePrivate('What Redis sees', () => {
  const redis = PrivateRedis.install();

  async function registryOf(options: Partial<RedisLockRegistryOptions>): Promise<RedisLockRegistry> {
    const [client, subscriber] = [await redis.connect(), await redis.connect()];
    return createRegistry(client, { fencing: true, registryKey: 'orders', name: 'test', subscriber, ...options })
      .registry;
  }

  interface AnyLock {
    lock(): Promise<Pick<Lease, 'unlock' | 'eval'>>;
  }

  /** One has the lock, another one waits for it, and gets it. */
  async function contend(one: AnyLock, other: AnyLock, { commands }: Monitor): Promise<void> {
    const runs = () => commands.filter(({ name }) => name === 'EVALSHA').length;
    const lease = await one.lock();
    expect(await lease.eval('return 1')).toBe(1);
    const before = runs();
    const waits = other.lock();
    // It was refused, subscribed if it does so, and was refused again.
    await until(() => runs() > before + 1);
    // It leaves a mark, and proves that messages arrive: on a busy machine it would do so in some runs only.
    await sleep(WAITS_LONG);
    await lease.unlock();
    await (await waits).unlock();
  }

  const KINDS: Record<string, (monitor: Monitor) => Promise<void>> = {
    ...Object.fromEntries(
      LOCK_TYPES.map((lockType) => [lockType, (monitor: Monitor) => useAll({ lockType }, monitor)] as const),
    ),
    semaphore: async (monitor) => {
      const [one, other] = [await registryOf({}), await registryOf({})];
      await contend(one.semaphore('key', { permits: 1 }), other.semaphore('key', { permits: 1 }), monitor);
    },
    'read-write': async (monitor) => {
      const [one, other] = [(await registryOf({})).readWrite('key'), (await registryOf({})).readWrite('key')];
      await contend(one.write, other.read, monitor);
      await contend(one.read, other.write, monitor);
    },
    legacyChannel: (monitor) => useAll({ lockType: 'pub-sub', legacyChannel: true }, monitor),
  };

  async function useAll(options: Partial<RedisLockRegistryOptions>, monitor: Monitor): Promise<void> {
    const [one, other] = [await registryOf(options), await registryOf(options)];
    for (const key of ['key', '{tag}:key']) {
      await contend(one.obtain(key), other.obtain(key), monitor);
      await one.once(key, () => 1, { keepFor: 60_000 });
    }
  }

  it.each(Object.keys(KINDS))(
    'Keys and channels have the names that were written down, and scripts of applications are wrapped as they were: %s',
    async (kind) => {
      await redis.admin.flushAll();
      await redis.admin.scriptFlush();
      const monitor = await startMonitor({ socket: redis.address });
      atTheEnd(() => monitor.stop());
      await KINDS[kind]?.(monitor);
      await monitor.settle();
      const { commands } = monitor;
      monitor.stop();
      await compare(`a lock: ${kind}`, {
        keys: distinct(keysIn(commands)),
        channels: distinct(channelsIn(commands)),
        'scripts of applications': distinct(othersScripts(commands)),
      });
    },
  );
});
