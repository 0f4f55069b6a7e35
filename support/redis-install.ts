import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdir, readdir, rename, rm, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { findRedisBinary, howToGetRedis, identifyRedis, redisCache } from './redis-binary';

interface Installer {
  readonly name: string;
  readonly changesSystem: boolean;
  applies(): boolean;
  install(): Promise<void>;
}

const installers: readonly Installer[] = [
  {
    name: 'Debian packages, unpacked into node_modules/.cache',
    changesSystem: false,
    applies: () => existsSync('/usr/bin/apt-get') && existsSync('/usr/bin/dpkg'),
    install: unpackDebianPackages,
  },
  {
    name: 'apt-get install redis-server',
    changesSystem: true,
    applies: () => existsSync('/usr/bin/apt-get') && process.getuid?.() === 0,
    install: async () => {
      await run('apt-get', ['update']);
      await run('apt-get', ['install', '-y', '--no-install-recommends', 'redis-server']);
    },
  },
  {
    name: 'brew install redis',
    changesSystem: true,
    applies: () => process.platform === 'darwin',
    install: () => run('brew', ['install', 'redis']).then(() => undefined),
  },
];

/** Installs a Redis server and returns its binary. It changes the system only with `mayChangeSystem`. */
export async function installRedis(options: { mayChangeSystem: boolean }): Promise<string> {
  const failures: string[] = [];
  for (const installer of installers) {
    if (!installer.applies() || (installer.changesSystem && !options.mayChangeSystem)) continue;
    try {
      await installer.install();
      const binary = findRedisBinary();
      if (binary) return binary;
      failures.push(`${installer.name}: done, but no server was found afterwards`);
    } catch (error) {
      failures.push(`${installer.name}: ${lastLine(error)}`);
    }
  }
  throw new Error(['No Redis server could be installed.', ...failures, howToGetRedis].join('\n'));
}

/** Needs no root and does not change the system. The package redis-tools contains the server under another name. */
async function unpackDebianPackages(): Promise<void> {
  const unpacked = `${redisCache}.${process.pid}`;
  const downloads = join(unpacked, 'downloads');
  try {
    await mkdir(downloads, { recursive: true });
    const apt = await aptOptions(downloads);
    await run('apt-get', [...apt, 'download', 'redis-tools', ...(await missingLibraries(apt))], { cwd: downloads });
    const packages = (await readdir(downloads)).filter((name) => name.endsWith('.deb'));
    for (const name of packages) await run('dpkg', ['-x', join(downloads, name), unpacked]);
    await rm(downloads, { recursive: true });
    // One binary is the server and the checking tool; its name decides which.
    await symlink('redis-check-rdb', join(unpacked, 'usr/bin/redis-server'));
    await writeFile(join(unpacked, 'redis-server'), launcher, { mode: 0o755 });
    identifyRedis(join(unpacked, 'redis-server'));
    await rm(redisCache, { recursive: true, force: true });
    await rename(unpacked, redisCache);
  } finally {
    await rm(unpacked, { recursive: true, force: true });
  }
}

const launcher = `#!/bin/sh
here=$(dirname "$0")
LD_LIBRARY_PATH=$(echo "$here"/usr/lib/*-linux-*) exec "$here/usr/bin/redis-server" "$@"
`;

/** A bare image has no package lists. They are fetched into a folder of this project, which needs no root either. */
async function aptOptions(downloads: string): Promise<string[]> {
  const known = await run('apt-cache', ['show', 'redis-tools']).catch(() => '');
  if (known) return [];
  const own = ['-o', `Dir::State::lists=${join(downloads, 'lists')}`, '-o', `Dir::Cache=${join(downloads, 'apt')}`];
  await mkdir(join(downloads, 'lists', 'partial'), { recursive: true });
  await mkdir(join(downloads, 'apt', 'archives', 'partial'), { recursive: true });
  await run('apt-get', [...own, 'update']);
  return own;
}

async function missingLibraries(apt: readonly string[]): Promise<string[]> {
  const depends = await run('apt-cache', [...apt, 'depends', 'redis-tools']);
  const names = [...depends.matchAll(/^\s+Depends: ([^<\s]+)$/gm)].map((match) => match[1] as string);
  const status = await Promise.all(names.map((name) => run('dpkg', ['-s', name]).catch(() => 'unknown')));
  return names.filter((_, index) => !status[index]?.includes('install ok installed'));
}

async function run(command: string, args: readonly string[], options: { cwd?: string } = {}): Promise<string> {
  const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive' };
  const { stdout } = await promisify(execFile)(command, args, { ...options, env, timeout: 180_000 });
  return stdout;
}

function lastLine(error: unknown): string {
  const message = error instanceof Error ? error.message : String(error);
  return message.trim().split('\n').at(-1) ?? message;
}
