import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { cacheOf, installOnce, runStep, runsHere } from '../cache';
import type { Language, Library } from '../language';

const FOLDER = cacheOf('python');
const REQUIREMENTS = readFileSync(join(__dirname, 'requirements.txt'), 'utf8');

function versionOf(name: string): string {
  const [, version = ''] = new RegExp(`^${name}==(.*)$`, 'm').exec(REQUIREMENTS) ?? [];
  return version;
}

const REDIS_PY: Omit<Library, 'id' | 'title'> = {
  version: versionOf('redis'),
  there: 'orders:NAME',
  registryKey: 'orders',
  key: 'NAME',
  token: /^[0-9a-f]{32}$/,
  tokenText: '32 hex digits',
  expiry: 'none: give it a `timeout`',
  waits: 'polls every 100 ms',
  about: 'locked() True, owned() False',
  withoutExpiry: true,
};

export const python: Language = {
  name: 'python',
  title: 'Python',
  required: true,
  missing: () => (runsHere('python3', '-c', 'import venv, ensurepip') ? undefined : 'python3 with venv and pip'),
  install: () =>
    installOnce(FOLDER, REQUIREMENTS, () => {
      runStep('python3', ['-m', 'venv', FOLDER]);
      const pip = ['-m', 'pip', 'install', '--quiet', '--disable-pip-version-check'];
      runStep(join(FOLDER, 'bin/python'), [...pip, '-r', join(__dirname, 'requirements.txt')]);
    }),
  peer: [join(FOLDER, 'bin/python'), '-u', join(__dirname, 'peer.py')],
  libraries: [
    { ...REDIS_PY, id: 'redis-py', title: '`redis` (redis-py) `Lock`' },
    { ...REDIS_PY, id: 'redis-py-asyncio', title: '`redis.asyncio` `Lock`' },
    {
      ...REDIS_PY,
      id: 'redis-py-binary',
      title: '`redis` (redis-py) `Lock` with a token of bytes',
      token: /^\xff\xfe\0[\s\S]{17}$/,
      tokenText: '20 bytes',
      isBinary: true,
      isVariant: true,
    },
  ],
};
