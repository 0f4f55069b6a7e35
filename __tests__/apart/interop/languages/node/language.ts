import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { buildSync } from 'esbuild';
import { installLockedPackages } from '../../../../../support/npm-install';
import type { Language, Library } from '../language';

/** The libraries are those that the benchmarks run, in versions that are locked. */
const PACKAGES = join(__dirname, '../../../../../scripts/bench');
const PEER = join(PACKAGES, 'node_modules/.cache/interop/peer.mjs');

const { dependencies } = JSON.parse(readFileSync(join(PACKAGES, 'package.json'), 'utf8')) as {
  dependencies: Record<string, string>;
};
const versionOf = (name: string) => dependencies[name]?.replace(/^.*@/, '') ?? '';

const AS_GIVEN = { there: 'orders:NAME', registryKey: 'orders', key: 'NAME' } as const;

const REDLOCK: Omit<Library, 'id' | 'title' | 'version' | 'about'> = {
  ...AS_GIVEN,
  token: /^[0-9a-f]{32}$/,
  tokenText: '32 hex digits',
  expiry: 'given in each call',
  waits: 'polls every 100 to 300 ms',
};

export const node: Language = {
  name: 'node',
  title: 'Node',
  missing: () => undefined,
  install: () => {
    installLockedPackages(PACKAGES, 'Installing the other libraries of Node, once …');
    buildSync({
      entryPoints: [join(__dirname, 'peer.ts')],
      outfile: PEER,
      bundle: true,
      platform: 'node',
      format: 'esm',
      target: 'node20',
    });
  },
  peer: [process.execPath, PEER],
  libraries: [
    {
      ...REDLOCK,
      id: 'redlock',
      title: '`redlock` 5, one server',
      version: versionOf('redlock'),
      about: 'acquire(): ExecutionError',
    },
    {
      ...REDLOCK,
      id: 'redlock4',
      title: '`redlock` 4, one server',
      version: versionOf('redlock4'),
      about: 'lock(): LockError',
    },
    {
      id: 'redis-semaphore',
      title: '`redis-semaphore` `Mutex`',
      version: versionOf('redis-semaphore'),
      there: 'NAME',
      registryKey: 'mutex',
      key: 'NAME',
      token: /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/,
      tokenText: 'a UUID',
      expiry: '10 s, renewed',
      waits: 'polls every 10 ms',
      about: 'tryAcquire() false',
      lateRelease: 'silent',
    },
    {
      ...AS_GIVEN,
      id: 'verrou',
      title: '`verrou`',
      version: versionOf('@verrou/core'),
      token: /^[0-9a-z]{6,12}$/,
      tokenText: 'about 9 letters and digits',
      expiry: '30 s; with `null` none',
      waits: 'polls every 250 ms',
      about: 'isLocked() true',
      withoutExpiry: true,
    },
    {
      ...AS_GIVEN,
      id: 'redlock-universal',
      title: '`redlock-universal`',
      version: versionOf('redlock-universal'),
      token: /^[0-9a-f]{32}$/,
      tokenText: '32 hex digits',
      expiry: '30 s',
      waits: 'polls every 100 ms',
      about: 'isLocked() true',
    },
  ],
};
