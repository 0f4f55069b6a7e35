import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { afterEach } from '@jest/globals';
import { compiled } from '../support/compiled';
import type { Message, Order, SellerMessage, Shop } from './seller';

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
    this.#child = fork(compiled(join(__dirname, 'seller.ts')), {
      execArgv: [],
      stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
    });
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
