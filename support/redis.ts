import { mkdtemp, rm } from 'node:fs/promises';
import { createConnection } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { freePort } from './free-port';
import { spawnGuarded } from './guarded-process';
import { findRedisBinary, howToGetRedis, identifyRedis } from './redis-binary';

/** For `createClient({ socket: address })`, which requires `tls`, and for `net.connect(address)`. */
export type RedisAddress = { path: string; tls: false } | { host: string; port: number };

export interface StartRedisOptions {
  /** Settings that override the defaults, for example `['--appendonly', 'yes']`. */
  args?: readonly string[];
  /** TCP on loopback; `true` for a free port. Default: a unix socket, whose path cannot be in use. */
  port?: boolean | number;
  /** A working directory that `stop` keeps, for another start with the same files and socket. */
  dir?: string;
}

export interface RedisServer {
  readonly address: RedisAddress;
  readonly pid: number;
  readonly name: string;
  readonly version: string;
  readonly dir: string;
  kill(signal: NodeJS.Signals): void;
  stop(): Promise<void>;
}

const startTimeout = 10_000;

/** Starts a private Redis and waits until it answers. It ends with `stop`, or with the starting process. */
export async function startRedis(options: StartRedisOptions = {}): Promise<RedisServer> {
  const binary = findRedisBinary();
  if (!binary) throw new Error(`There is no Redis server on this machine. ${howToGetRedis}`);
  const identity = identifyRedis(binary);
  const dir = options.dir ?? (await mkdtemp(join(tmpdir(), 'redis-')));
  const address = await chooseAddress(dir, options.port);
  const listen =
    'path' in address
      ? ['--port', '0', '--unixsocket', address.path]
      : ['--port', String(address.port), '--bind', address.host];
  const settings = ['--dir', dir, '--save', '', '--appendonly', 'no', ...(options.args ?? [])];
  const server = await spawnGuarded(binary, [...listen, ...settings]);
  const stop = async () => {
    await server.stop();
    if (options.dir === undefined) await rm(dir, { recursive: true, force: true });
  };

  const deadline = performance.now() + startTimeout;
  while (!(await answers(address))) {
    if (!server.hasExited() && performance.now() < deadline) {
      await sleep(5);
      continue;
    }
    const fault = server.hasExited() ? 'exited during its start' : `did not answer within ${startTimeout} ms`;
    await stop();
    throw new Error(`${identity.name} ${identity.version} ${fault}; its log:\n${server.log()}`);
  }
  return { ...identity, address, pid: server.pid, dir, kill: server.kill, stop };
}

async function chooseAddress(dir: string, port: boolean | number | undefined): Promise<RedisAddress> {
  if (!port) return { path: join(dir, 'redis.sock'), tls: false };
  return { host: '127.0.0.1', port: port === true ? await freePort() : port };
}

/** Any reply counts, also an error about a password, except -LOADING: the data are not loaded yet. */
function answers(address: RedisAddress): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = createConnection(address);
    const settle = (answered: boolean) => {
      socket.destroy();
      resolve(answered);
    };
    socket.setTimeout(500, () => settle(false));
    socket.on('error', () => settle(false));
    socket.on('close', () => settle(false));
    socket.once('data', (reply) => settle(!reply.toString().startsWith('-LOADING')));
    socket.write('PING\r\n');
  });
}
