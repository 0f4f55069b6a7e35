import { hostOf, type World } from '../world';

/** Removals of one acquisition that may be unanswered at a time: two of its unlock, and one that follows it up. */
const MOST_UNANSWERED = 3;

/**
 * Removals of one acquisition that may be sent: some are repeated while an attempt may still be executed. One more for
 * each connection that its process has made since the first one, and for each time that its client was closed and opened
 * again, as a removal may be lost with the one before. Not for Redisson's queue, where the last position is removed once
 * more after each reconnect.
 */
const MOST_SENT = 6;

/** What is sent for one acquisition that is over is bounded, however long Redis is away. */
export class CommandChecks {
  readonly #world: World;
  /** By text and by digest. */
  readonly #scripts: ReadonlyMap<string, string>;
  /** By acquisition: how many, and the connections that its process had made before. */
  readonly #sent = new Map<string, { count: number; readonly connections: number }>();

  constructor(world: World, scripts: ReadonlyMap<string, string>) {
    this.#world = world;
    this.#scripts = scripts;
  }

  /** The library sends a script. */
  asked([command, script = '', ...args]: readonly string[]): void {
    // It repeats what a server refused that did not know the script.
    if (command === 'EVAL') return;
    if (this.#scripts.get(script)?.includes('redisson-fair')) return;
    for (const owner of this.#removed(script, args)) {
      // What the server refuses may be allowed again at any time, and what too few replicas have is asked for again.
      const { network, timeline } = this.#world;
      const isRefused = (hostOf(this.#world, owner)?.refusal?.until ?? 0) > timeline.now;
      if (isRefused || network.replicas.areInTrouble) continue;
      const connections = this.#connectionsOf(owner);
      const sent = this.#sent.get(owner) ?? { count: 0, connections };
      this.#sent.set(owner, sent);
      // A client that was given up, or is closed, does not count until it is opened again.
      if (++sent.count > MOST_SENT + Math.max(0, connections - sent.connections)) {
        const text = `${owner} is removed for the ${sent.count}th time`;
        this.#world.violations.report('too many commands', owner, text);
      }
    }
  }

  /** Now and then. */
  check(): void {
    for (const { directory } of this.#world.hosts) {
      const unanswered = new Map<string, number>();
      for (const client of directory.clients) {
        for (const [, script = '', ...args] of client.unanswered) {
          for (const owner of this.#removed(script, args)) {
            const count = (unanswered.get(owner) ?? 0) + 1;
            unanswered.set(owner, count);
            if (count <= MOST_UNANSWERED) continue;
            const text = `${count} removals of ${owner} are unanswered`;
            this.#world.violations.report('too many commands', owner, text);
          }
        }
      }
    }
  }

  /** How many its process has made or tried to make so far. */
  #connectionsOf(owner: string): number {
    const host = hostOf(this.#world, owner);
    const clients = [...(host?.directory.everyClient ?? [])];
    const begun = host?.counts.reopened ?? 0;
    return clients.reduce((sum, { isSubscriber, socketEpoch }) => sum + (isSubscriber ? 0 : socketEpoch), begun);
  }

  /** The acquisitions that a script removes. */
  #removed(script: string, args: readonly string[]): readonly string[] {
    if (!/^(release|leave|keep)/.test(this.#scripts.get(script) ?? '')) return [];
    return args.filter(
      (arg) => /:\d+(@\d+)?$/.test(arg) && this.#world.hosts.some(({ clientId }) => arg.startsWith(clientId)),
    );
  }
}
