import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { buildJava, cache, JAVA } from '../prepare';

const FOLDER = join(__dirname, '..', 'peers');
const GO = join(cache, 'go-peer');
const PYTHON = join(cache, 'python');
const PIP = ['-m', 'pip', 'install', '-q', '--no-deps', '--upgrade', '--target', PYTHON, '-r', 'requirements.txt'];

/** Libraries of other languages by name: how their program is built and run, and the file that locks their version. */
const PEERS = {
  Redisson: { build: buildJava, program: [...JAVA.run, 'LockPeer'], lockedIn: 'java/pom.xml' },
  redsync: { build: () => run('go', ['build', '-o', GO, '.'], 'go'), program: [GO, 'redsync'], lockedIn: 'go/go.mod' },
  redislock: {
    build: () => run('go', ['build', '-o', GO, '.'], 'go'),
    program: [GO, 'redislock'],
    lockedIn: 'go/go.mod',
  },
  'redis-py': {
    build: () => run('python3', PIP, 'python'),
    program: ['env', `PYTHONPATH=${PYTHON}`, 'python3', join(FOLDER, 'python', 'lock_peer.py')],
    lockedIn: 'python/requirements.txt',
  },
} as const;

export type PeerName = keyof typeof PEERS;

/** Returns why it failed, if it did. */
function run(command: string, args: readonly string[], folder: string): string | undefined {
  const { error, status, stderr } = spawnSync(command, args, { cwd: join(FOLDER, folder), encoding: 'utf8' });
  if (error !== undefined) return `${command} is not on this machine`;
  return status === 0 ? undefined : `\`${command} ${args.join(' ')}\` failed: ${stderr.trim()}`;
}

/** The program of a library in another language, or why there is none. */
export function buildPeer(name: PeerName): { readonly program: readonly string[] } | { readonly missing: string } {
  const { build, program } = PEERS[name];
  const missing = build();
  return missing === undefined ? { program } : { missing };
}

export function versionOf(name: PeerName): string {
  const locked = readFileSync(join(FOLDER, PEERS[name].lockedIn), 'utf8');
  const pattern = {
    Redisson: 'redisson</artifactId>\\s*<version>',
    redsync: 'redsync/v4 v',
    redislock: 'redislock v',
    'redis-py': 'redis==',
  }[name];
  return new RegExp(`${pattern}([\\d.]+)`).exec(locked)?.[1] ?? '?';
}
