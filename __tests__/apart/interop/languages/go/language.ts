import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { cacheOf, installOnce, runStep, runsHere } from '../cache';
import type { Language } from '../language';

const FOLDER = cacheOf('go');
const PEER = join(FOLDER, 'peer');

const textOf = (file: string) => readFileSync(join(__dirname, file), 'utf8');

function versionOf(module: string): string {
  const [, version = ''] = new RegExp(`${module} v(\\S+)$`, 'm').exec(textOf('go.mod')) ?? [];
  return version;
}

export const go: Language = {
  name: 'go',
  title: 'Go',
  missing: () => (runsHere('go', 'version') ? undefined : 'go'),
  install: () =>
    installOnce(FOLDER, ['go.mod', 'go.sum', 'main.go'].map(textOf).join(''), () =>
      runStep('go', ['build', '-o', PEER, '.'], __dirname),
    ),
  peer: [PEER],
  libraries: [
    {
      id: 'bsm',
      title: '`bsm/redislock`',
      version: versionOf('github.com/bsm/redislock'),
      there: 'orders:NAME',
      registryKey: 'orders',
      key: 'NAME',
      token: /^[\w-]{22}interop$/,
      tokenText: '22 of base64, and the metadata',
      expiry: 'given in each call',
      waits: 'one try, or polls as its `RetryStrategy` says',
      about: 'Obtain: ErrNotObtained',
    },
    {
      id: 'redsync',
      title: '`redsync`, one pool',
      version: versionOf('github.com/go-redsync/redsync/v4'),
      there: 'orders:NAME',
      registryKey: 'orders',
      key: 'NAME',
      token: /^[\w+/]{22}==$/,
      tokenText: '24 of base64',
      expiry: '8 s',
      waits: 'polls every 50 to 250 ms',
      about: 'TryLock: ErrTaken',
    },
    {
      id: 'rueidislock',
      title: '`rueidislock`, `KeyMajority: 1`',
      version: versionOf('github.com/redis/rueidis'),
      there: 'NAME',
      registryKey: 'rueidislock',
      key: '0:NAME',
      // Any 24 bytes.
      token: /^[\s\S]{24}$/,
      isBinary: true,
      tokenText: '24 bytes',
      expiry: '5 s, renewed',
      waits: 'listens to changes of the key',
      about: 'TryWithContext: ErrNotLocked',
      lateRelease: 'silent',
      // Its goroutines pass the lock on within a millisecond, which a caller of spin seldom meets: it may have as few as 8 of 100 turns.
      leastShare: 0.04,
    },
  ],
};
