import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import type { RedisAddress } from '../../../support/redis';
import { compiled } from '../../support/compiled';
import { atTheEnd } from '../../support/private-redis';
import type { Contender, LeaseEvent, Outcome } from './contender';
import type { Call, Message } from './contender-process';

/** A contender in its own process. */
export class KillableContender implements Pick<Contender, Call['method']> {
  readonly #child: ChildProcess;
  readonly #calls = new Map<number, (outcome: Outcome) => void>();
  #id = 0;

  static async start(address: RedisAddress, registryKey: string, report: (event: LeaseEvent) => void) {
    const contender = new KillableContender(address, registryKey, report);
    await new Promise((resolve) => contender.#calls.set(0, resolve));
    return contender;
  }

  private constructor(address: RedisAddress, registryKey: string, report: (event: LeaseEvent) => void) {
    const program = compiled(join(__dirname, 'contender-process.ts'));
    this.#child = fork(program, [JSON.stringify({ address, registryKey })], { execArgv: [] });
    atTheEnd(() => void this.#child.kill('SIGKILL'));
    this.#child.on('message', (message: Message) => {
      if ('leaseEvent' in message) report(message.leaseEvent);
      else this.#settle(message.id, message.outcome);
    });
    this.#child.on('exit', () => {
      for (const id of [...this.#calls.keys()]) this.#settle(id, 'killed');
    });
  }

  lock(key: string, waitTime: number): Promise<Outcome> {
    return this.#call('lock', key, waitTime);
  }

  tryLock(key: string): Promise<Outcome> {
    return this.#call('tryLock', key);
  }

  abort(): Promise<Outcome> {
    return this.#call('abort');
  }

  renew(): Promise<Outcome> {
    return this.#call('renew');
  }

  unlock(): Promise<Outcome> {
    return this.#call('unlock');
  }

  /** Sends SIGKILL; resolves when the process has ended. */
  async kill(): Promise<void> {
    const exited = once(this.#child, 'exit');
    this.#child.kill('SIGKILL');
    await exited;
  }

  #call(method: Call['method'], key = '', waitTime = 0): Promise<Outcome> {
    const id = ++this.#id;
    const call: Call = { id, method, key, waitTime };
    return new Promise((resolve) => {
      this.#calls.set(id, resolve);
      this.#child.send(call);
    });
  }

  #settle(id: number, outcome: Outcome): void {
    this.#calls.get(id)?.(outcome);
    this.#calls.delete(id);
  }
}
