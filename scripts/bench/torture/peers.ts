import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { cache } from '../prepare';

const FOLDER = join(__dirname, '..', 'peers');
const JAVA = ['classes', 'libraries/*'].map((part) => join(cache, 'java', part)).join(':');
const GO = join(cache, 'go-peer');
const PYTHON = join(cache, 'python');
const PIP = ['-m', 'pip', 'install', '-q', '--no-deps', '--upgrade', '--target', PYTHON, '-r', 'requirements.txt'];
const BUILD_GO = ['go', 'build', '-o', GO, '.'];

/** Libraries of other languages: how their program is built and run, and where their version is locked. */
const PEERS = {
  Redisson: {
    build: ['mvn', '-q', '-B', 'process-classes'],
    program: ['java', '-Xmx512m', '-cp', JAVA, 'LockPeer'],
    locked: ['java/pom.xml', /redisson<\/artifactId>\s*<version>([\d.]+)/],
  },
  redsync: { build: BUILD_GO, program: [GO, 'redsync'], locked: ['go/go.mod', /redsync\/v4 v([\d.]+)/] },
  redislock: { build: BUILD_GO, program: [GO, 'redislock'], locked: ['go/go.mod', /redislock v([\d.]+)/] },
  'redis-py': {
    build: ['python3', ...PIP],
    program: ['env', `PYTHONPATH=${PYTHON}`, 'python3', join(FOLDER, 'python', 'lock_peer.py')],
    locked: ['python/requirements.txt', /redis==([\d.]+)/],
  },
} as const;

export type PeerName = keyof typeof PEERS;

/** The program of a library in another language, or why there is none. */
export function buildPeer(name: PeerName): { readonly program: readonly string[] } | { readonly missing: string } {
  const { build, program, locked } = PEERS[name];
  const [command, ...args] = build;
  const cwd = join(FOLDER, locked[0], '..');
  const { error, status, stdout, stderr } = spawnSync(command, args, { cwd, encoding: 'utf8' });
  if (error !== undefined) return { missing: `${command} is not on this machine` };
  return status === 0 ? { program } : { missing: `\`${build.join(' ')}\` failed: ${`${stdout}${stderr}`.trim()}` };
}

export function versionOf(name: PeerName): string {
  const [file, pattern] = PEERS[name].locked;
  return pattern.exec(readFileSync(join(FOLDER, file), 'utf8'))?.[1] ?? '?';
}
