import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { cacheOf, installOnce, runStep, runsHere } from '../cache';
import type { Language } from '../language';

const FOLDER = cacheOf('rust');

const textOf = (file: string) => readFileSync(join(__dirname, file), 'utf8');
const [, version = ''] = /^rslock = \{ version = "=([^"]*)"/m.exec(textOf('Cargo.toml')) ?? [];

export const rust: Language = {
  name: 'rust',
  title: 'Rust',
  missing: () => (runsHere('cargo', '--version') ? undefined : 'cargo'),
  install: () =>
    installOnce(FOLDER, ['Cargo.toml', 'Cargo.lock', 'src/main.rs'].map(textOf).join(''), () =>
      runStep('cargo', ['build', '--quiet', '--locked', '--target-dir', FOLDER], __dirname),
    ),
  peer: [join(FOLDER, 'debug/interop-peer')],
  libraries: [
    {
      id: 'rslock',
      title: '`rslock`, one server',
      version,
      there: 'orders:NAME',
      registryKey: 'orders',
      key: 'NAME',
      // Any 20 bytes.
      token: /^[\s\S]{20}$/,
      isBinary: true,
      tokenText: '20 bytes',
      expiry: 'given in each call',
      waits: 'polls every 0 to 200 ms',
      about: 'lock: Unavailable, is_freed: RedisKeyMismatch',
      lateRelease: 'silent',
    },
  ],
};
