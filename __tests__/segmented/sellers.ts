import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll } from '@jest/globals';
import { build } from 'esbuild';
import type { Message, Order, SellerMessage, Shop } from './seller';

let folder: string;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'seller-'));
  // One file of plain JavaScript starts several times as fast as TypeScript.
  await build({
    entryPoints: [join(__dirname, 'seller.ts')],
    outfile: join(folder, 'seller.js'),
    bundle: true,
    platform: 'node',
  });
});

afterAll(() => rm(folder, { recursive: true, force: true }));

const children = new Set<ChildProcess>();

afterEach(() => {
  for (const child of children) child.kill('SIGKILL');
  children.clear();
});

/** A seller process. It ends with the test, and serves one shop after the other. */
export class Seller {
  readonly #child: ChildProcess;
  readonly #ready: Promise<unknown>;

  constructor() {
    this.#child = fork(join(folder, 'seller.js'), { execArgv: [], stdio: ['ignore', 'inherit', 'inherit', 'ipc'] });
    children.add(this.#child);
    // A failed test does not wait for the processes that it has left.
    this.#child.unref();
    this.#child.channel?.unref();
    this.#ready = once(this.#child, 'message');
  }

  async open(shop: Shop, listener: (message: Exclude<SellerMessage, 'ready'>) => void): Promise<void> {
    await this.#ready;
    this.#child.removeAllListeners('message');
    this.#child.on('message', listener);
    this.#send({ shop });
  }

  sell(orders: readonly Order[]): void {
    this.#send({ orders });
  }

  async kill(): Promise<void> {
    const exited = once(this.#child, 'exit');
    this.#child.kill('SIGKILL');
    await exited;
    children.delete(this.#child);
  }

  #send(message: Message): void {
    this.#child.send(message, () => {}); // an error means that it was killed by the test
  }
}
