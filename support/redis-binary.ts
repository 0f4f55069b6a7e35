import { execFileSync } from 'node:child_process';
import { accessSync, constants } from 'node:fs';
import { delimiter, join } from 'node:path';

/** The folder into which `redis-install.ts` unpacks a server for this project only. */
export const redisCache = join(__dirname, '..', 'node_modules', '.cache', 'redis');

export const howToGetRedis =
  'To get one: `npm run setup:redis`, or install the package redis-server or valkey-server, ' +
  'or name one with REDIS_URL or REDIS_SERVER_BIN.';

/** The server binary for private instances; undefined if this machine has none. */
export function findRedisBinary(): string | undefined {
  const named = process.env.REDIS_SERVER_BIN;
  if (named) {
    if (isExecutable(named)) return named;
    // A wrong name is a mistake, which another server would hide.
    throw new Error(`REDIS_SERVER_BIN is not an executable file: ${named}`);
  }
  const folders = (process.env.PATH ?? '').split(delimiter).filter(Boolean);
  const onPath = ['redis-server', 'valkey-server', 'redict-server'].flatMap((name) =>
    folders.map((folder) => join(folder, name)),
  );
  return [...onPath, join(redisCache, 'redis-server')].find(isExecutable);
}

/** Name and version of the binary, for example `{ name: 'redis-server', version: '7.0.15' }`. */
export function identifyRedis(binary: string): { name: string; version: string } {
  const answer = execFileSync(binary, ['--version'], { encoding: 'utf8', timeout: 5_000, stdio: 'pipe' });
  const version = /\bv=(\S+)/.exec(answer)?.[1];
  if (!version) throw new Error(`${binary} --version is not the version of a Redis server: ${answer.trim()}`);
  // `Valkey server v=9.1.2 …`
  const [, product = 'Redis'] = /^\s*(\w+) server\b/i.exec(answer) ?? [];
  return { name: `${product.toLowerCase()}-server`, version };
}

function isExecutable(file: string): boolean {
  try {
    accessSync(file, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
