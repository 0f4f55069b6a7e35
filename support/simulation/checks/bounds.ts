import type { OnceCallers } from '../once';
import { FOLLOW_UP, type Host, quietFor, type World } from '../world';
import type { CallChecks } from './calls';
import type { LeaseChecks } from './leases';

/** ms over which commands are counted. */
const COUNTED = 4_000;

/** Commands a second: of a process, for each key of a caller that waits, and of a lease. `spin` polls eight times in an interval. */
const IDLE = 40;
const BUSY = 250;

/** Commands of each call. */
const OF_A_CALL = 12;

/** Commands of each call before that may be followed up: what it left has up to two owner values. */
const OF_A_FOLLOW_UP = 4;

/** Connections of the library's own: at the beginning, and for a client that is opened again. For messages, and replicas. */
const FIRST_CONNECTIONS = 5;
const REOPENED_CONNECTIONS = 2;

/** ms from one connection of the library's own to the next one, but for those. */
const CONNECTED_AT_MOST = 4_000;

/** What a process has when nobody calls: that of a few locks, and of its connections. */
const ENTRIES = 25;
const TIMERS = 12;

/** ms after which what was refused is not followed up again and again. */
const ALLOWED = 5_000;

interface Counts {
  readonly since: number;
  readonly commands: number;
  readonly calls: number;
  /** Calls of the time before. */
  readonly lately: number;
  /** Calls before those: what they left was removed. */
  readonly settled: number;
  busiest: number;
}

/** What a process sends, opens and keeps does not grow with time, whatever fault there is. */
export class BoundChecks {
  readonly #world: World;
  readonly #leases: LeaseChecks;
  readonly #calls: CallChecks;
  readonly #once: OnceCallers;
  readonly #counts = new Map<Host, Counts>();

  constructor(world: World, calls: CallChecks, leases: LeaseChecks, once: OnceCallers) {
    this.#world = world;
    this.#once = once;
    this.#calls = calls;
    this.#leases = leases;
  }

  /** Now and then. */
  check(): void {
    const { hosts, timeline, violations } = this.#world;
    for (const host of hosts) {
      const { commands, calls, connections, reopened } = host.counts;
      const { name } = host.process;
      const begun = this.#counts.get(host) ?? { since: 0, commands: 0, calls: 0, lately: 0, settled: 0, busiest: 0 };
      this.#counts.set(host, begun);
      begun.busiest = Math.max(begun.busiest, this.#busyOf(host));
      const ms = timeline.now - begun.since;
      if (ms < COUNTED) continue;
      const lately = calls - begun.calls;
      // While Redis is away its calls become more and more, and all are followed up when it is back.
      const settled = quietFor(this.#world, host) < FOLLOW_UP ? begun.settled : begun.calls;
      this.#counts.set(host, { since: timeline.now, commands, calls, lately, settled, busiest: 0 });
      const most =
        (ms / 1_000) * (IDLE + begun.busiest * BUSY) +
        OF_A_CALL * (lately + begun.lately) +
        OF_A_FOLLOW_UP * (begun.calls - begun.lately - begun.settled);
      const sent = commands - begun.commands;
      // What is refused is followed up again and again, each acquisition by itself.
      const isRefused = timeline.now - (host.refusal?.until ?? Number.NEGATIVE_INFINITY) < ALLOWED;
      if (sent > most && !isRefused)
        violations.report('too many commands', name, `${name} sends ${sent} commands in ${ms} ms, and not ${most}`);
      const expected = FIRST_CONNECTIONS + REOPENED_CONNECTIONS * reopened;
      if (connections > expected + timeline.now / CONNECTED_AT_MOST)
        violations.report('too many connections', name, `${name} has made ${connections} connections`);
    }
  }

  /** When everybody is done. */
  checkIdle(host: Host): void {
    const { process, directory } = host;
    if (!process.isAlive || host.closing !== 'no' || quietFor(this.#world, host) < FOLLOW_UP) return;
    const channels = [...directory.clients].flatMap(({ connection }) =>
      // Its inbox lasts as long as the registry.
      [...(connection?.channels ?? [])].filter((channel) => !channel.includes(`@${host.clientId}`)),
    );
    const left = {
      timers: [process.timers.size, TIMERS],
      entries: [host.entries(), ENTRIES],
      // A channel whose UNSUBSCRIBE was lost with its connection stays.
      channels: [channels.length, host.lastCutOff > 0 ? Number.POSITIVE_INFINITY : 0],
    };
    for (const [what, [count = 0, most = 0]] of Object.entries(left)) {
      if (count <= most) continue;
      this.#world.violations.report('left behind', what, `${process.name} has ${count} ${what}, and nobody calls`);
    }
  }

  #busyOf(host: Host): number {
    const pending = [...this.#calls.pending].filter((call) => call.host === host);
    const open = [...this.#leases.open].filter((entry) => entry.host === host);
    const once = this.#once.isWaiting(host) ? 1 : 0;
    return pending.reduce((sum, { keys }) => sum + keys.length, open.length + once);
  }
}
