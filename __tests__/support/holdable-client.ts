import type { EvalOptions, RedisClient, RedisCommands } from '../../lib';

/** One command that was held back. */
export interface HeldCommand {
  /** Executes it; resolves when the server has answered. */
  deliver(): Promise<unknown>;
}

/**
 * A client whose next command can be held back while later ones overtake it. `'held'`: it is neither answered nor
 * executed until it is delivered, as in a pool with one slow connection. `'cut'`: it fails at once and is executed when
 * it is delivered, as after a cut of the connection that the server has not noticed yet.
 */
export class HoldableClient implements RedisClient {
  readonly #client: RedisClient;
  #next:
    | { readonly how: 'held' | 'cut'; readonly begin: string; readonly caught: (command: HeldCommand) => void }
    | undefined;
  /** Commands that were sent and are not answered yet, without the held one. */
  inFlight = 0;
  /** Commands that were answered so far. */
  answered = 0;

  constructor(client: RedisClient) {
    this.#client = client.withCommandOptions?.({ timeout: 0 }) ?? client;
  }

  /** Catches the next command that has an argument with this beginning; resolves when it has come. */
  catchNext(how: 'held' | 'cut', begin = ''): Promise<HeldCommand> {
    return new Promise((caught) => {
      this.#next = { how, begin, caught };
    });
  }

  eval(script: string, options?: EvalOptions): Promise<unknown> {
    return this.#send(options, (commands) => commands.eval(script, options));
  }

  evalSha(sha1: string, options?: EvalOptions): Promise<unknown> {
    return this.#send(options, (commands) => commands.evalSha(sha1, options));
  }

  async #send(
    { keys = [], arguments: args = [] }: EvalOptions = {},
    command: (commands: RedisCommands) => Promise<unknown>,
  ): Promise<unknown> {
    const next = [...keys, ...args].some((text) => text.startsWith(this.#next?.begin ?? '')) ? this.#next : undefined;
    if (next === undefined) {
      this.inFlight += 1;
      return command(this.#client).finally(() => {
        this.inFlight -= 1;
        this.answered += 1;
      });
    }
    this.#next = undefined;
    return new Promise((resolve, reject) => {
      if (next.how === 'cut') reject(new Error('Socket closed unexpectedly'));
      next.caught({
        deliver: () => {
          const executed = command(this.#client);
          executed.then(resolve, reject);
          return executed;
        },
      });
    });
  }
}
