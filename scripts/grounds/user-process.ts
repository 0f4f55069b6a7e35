import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { track } from '../../support/grounds/children';
import { within } from '../../support/grounds/within';

/** ms, for one answer of a process on a busy machine. */
const ANSWER = 30_000;

interface Reply {
  readonly id?: number;
  readonly event?: string;
  readonly result?: unknown;
  readonly error?: string;
}

/** A process that runs user/worker.mjs: it does what it is asked for. */
export class UserProcess {
  /** What it wrote to stderr. */
  stderr = '';
  readonly #exited: Promise<number | NodeJS.Signals>;
  readonly #child: ChildProcessWithoutNullStreams;
  readonly #asked = new Map<number, (reply: Reply) => void>();
  readonly #ready: Promise<void>;
  #lastId = 0;

  constructor(command: readonly string[], cwd: string, env: NodeJS.ProcessEnv) {
    const [program = '', ...args] = command;
    const child = track(spawn(program, args, { cwd, env, stdio: 'pipe' }));
    this.#child = child;
    this.#exited = once(child, 'close').then(([code, signal]) => code ?? signal);
    child.stdin.on('error', () => undefined); // it may have ended
    child.stderr.on('data', (chunk) => {
      this.stderr += chunk;
    });
    this.#ready = new Promise((ready) => {
      createInterface({ input: child.stdout }).on('line', (line) => {
        if (!line.startsWith('{')) return;
        const reply = JSON.parse(line) as Reply;
        if (reply.event === 'ready') ready();
        if (reply.id !== undefined) this.#asked.get(reply.id)?.(reply);
      });
    });
  }

  async ready(): Promise<this> {
    await within(ANSWER, 'its start', Promise.race([this.#ready, this.#ended('its start')]));
    return this;
  }

  /** What the act returned. Rejects with what it rejected with, or when the process ends before. */
  async ask<T = unknown>(act: string, given: object = {}, ms = ANSWER): Promise<T> {
    const id = ++this.#lastId;
    const answered = new Promise<Reply>((resolve) => this.#asked.set(id, resolve));
    this.#child.stdin.write(`${JSON.stringify({ id, do: act, ...given })}\n`);
    const reply = await within(ms, act, Promise.race([answered, this.#ended(act)]));
    if (reply.error !== undefined) throw new Error(`${act}: ${reply.error}`);
    return reply.result as T;
  }

  kill(signal: NodeJS.Signals): void {
    this.#child.kill(signal);
  }

  /** It closes its registry and its client, and then nothing may keep it. Returns how it ended. */
  async close(): Promise<number | NodeJS.Signals> {
    this.#child.stdin.write(`${JSON.stringify({ do: 'close' })}\n`);
    return this.end();
  }

  end(): Promise<number | NodeJS.Signals> {
    return within(ANSWER, 'its end', this.#exited);
  }

  async #ended(during: string): Promise<never> {
    const how = await this.#exited;
    throw new Error(`${during}: the process ended with ${how}: ${this.stderr.trim().slice(-600)}`);
  }
}
