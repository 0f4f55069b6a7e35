import { accessSync, constants, existsSync, readdirSync, statSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { identifyRedis } from '../../support/redis-binary';
import { UsageError } from './options';

/** A server that is on this machine. */
export interface Server {
  readonly binary: string;
  readonly name: string;
  readonly version: string;
}

/** The versions that the library is for, and how they begin. */
export const WANTED: Readonly<Record<string, (server: Server) => boolean>> = {
  'Redis 6.2': ({ name, version }) => name === 'redis-server' && version.startsWith('6.2'),
  'Redis 7.0': ({ name, version }) => name === 'redis-server' && version.startsWith('7.0'),
  'Redis 7.4': ({ name, version }) => name === 'redis-server' && version.startsWith('7.4'),
  'Redis 8': ({ name, version }) => name === 'redis-server' && version.startsWith('8.'),
  'Valkey 8': ({ name, version }) => name === 'valkey-server' && version.startsWith('8.'),
  'Valkey 9': ({ name, version }) => name === 'valkey-server' && version.startsWith('9.'),
};

/** `redis-server`, `valkey-server`, or with a version: `redis-8.2.3`. */
const NAME = /^(redis|valkey)-(server|\d)/;

/** How deep a folder is searched: `<folder>/redis-8.2/bin/redis-server`. */
const DEPTH = 3;

/** One of each version, the oldest first. */
export function findServers(paths: readonly string[]): Server[] {
  const binaries =
    paths.length > 0
      ? paths.flatMap(binariesAt)
      : (process.env.PATH ?? '').split(delimiter).flatMap((dir) => within(dir, 1));
  const servers = new Map<string, Server>();
  for (const binary of binaries) {
    const server = { binary, ...identifyRedis(binary) };
    const key = label(server);
    if (!servers.has(key)) servers.set(key, server);
  }
  return [...servers.values()].sort((a, b) => label(a).localeCompare(label(b), 'en', { numeric: true }));
}

export function label({ name, version }: { name: string; version: string }): string {
  return `${name} ${version}`;
}

function binariesAt(path: string): string[] {
  let found: string[];
  try {
    found = statSync(path).isDirectory() ? within(path, DEPTH) : [path].filter(isExecutable);
  } catch {
    throw new UsageError(`--server "${path}": there is nothing there`);
  }
  if (found.length === 0) throw new UsageError(`--server "${path}" is no server, and no folder with one`);
  return found;
}

function within(dir: string, depth: number): string[] {
  const entries = existsSync(dir) ? readdirSync(dir, { withFileTypes: true }) : [];
  return entries.flatMap((entry) => {
    const path = join(dir, entry.name);
    if (entry.isDirectory()) return depth > 1 ? within(path, depth - 1) : [];
    return NAME.test(entry.name) && isExecutable(path) ? [path] : [];
  });
}

function isExecutable(file: string): boolean {
  try {
    accessSync(file, constants.X_OK);
    return statSync(file).isFile();
  } catch {
    return false;
  }
}
