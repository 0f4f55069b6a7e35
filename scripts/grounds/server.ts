import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { createConnection } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { freePort } from '../../support/free-port';
import { NotToBeHad } from '../../support/grounds/cell';
import { track } from '../../support/grounds/children';
import { findRedisBinary, howToGetRedis } from '../../support/redis-binary';

/** ms until a server answers. */
const START = 20_000;

/** The command of a server that listens on this port of loopback, and keeps nothing on disk. */
export type ServerCommand = (port: number, folder: string) => readonly string[];

/** A binary of Redis, Valkey or Redict. */
export const redisCommand =
  (binary: string): ServerCommand =>
  (port, folder) => [
    binary,
    '--port',
    `${port}`,
    '--bind',
    '127.0.0.1',
    '--dir',
    folder,
    '--save',
    '',
    '--appendonly',
    'no',
  ];

/** The server that this machine has anyway. */
export function ownServer(): ServerCommand {
  const binary = findRedisBinary();
  if (binary === undefined) throw new NotToBeHad(`there is no Redis server on this machine. ${howToGetRedis}`);
  return redisCommand(binary);
}

/** A server of one cell, which can be killed and come back, empty, at the same address. */
export class Server {
  readonly port: number;
  readonly #folder: string;
  readonly #command: ServerCommand;
  #child: ChildProcess | undefined;

  private constructor(port: number, folder: string, command: ServerCommand) {
    this.port = port;
    this.#folder = folder;
    this.#command = command;
  }

  static async start(command: ServerCommand): Promise<Server> {
    const server = new Server(await freePort(), await mkdtemp(join(tmpdir(), 'grounds-')), command);
    await server.start();
    return server;
  }

  get url(): string {
    return `redis://127.0.0.1:${this.port}`;
  }

  async start(): Promise<void> {
    const [program = '', ...args] = this.#command(this.port, this.#folder);
    const child = track(spawn(program, args, { stdio: 'ignore', cwd: this.#folder }));
    this.#child = child;
    let failed: Error | undefined;
    child.on('error', (error) => {
      failed = error;
    });
    for (const until = performance.now() + START; performance.now() < until; await sleep(50)) {
      if (await this.#answers()) return;
      if (failed !== undefined || child.exitCode !== null) break;
    }
    throw new Error(`${program} does not answer: ${failed?.message ?? `exit code ${child.exitCode}`}`);
  }

  async kill(): Promise<void> {
    const child = this.#child;
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return;
    const exited = new Promise((resolve) => child.once('exit', resolve));
    child.kill('SIGKILL');
    await exited;
  }

  async stop(): Promise<void> {
    await this.kill();
    await rm(this.#folder, { recursive: true, force: true });
  }

  #answers(): Promise<boolean> {
    return new Promise((resolve) => {
      const socket = createConnection({ port: this.port, host: '127.0.0.1' });
      const settle = (answered: boolean) => {
        socket.destroy();
        resolve(answered);
      };
      socket.setTimeout(1_000, () => settle(false));
      socket.on('error', () => settle(false));
      socket.on('close', () => settle(false));
      socket.once('data', (reply) => settle(/^[+-](?!LOADING)/.test(reply.toString())));
      socket.write('*1\r\n$4\r\nPING\r\n'); // not every fake knows the shorter form
    });
  }
}
