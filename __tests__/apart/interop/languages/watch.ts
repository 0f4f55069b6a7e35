/** What came of the processes of one service in one phase. Waits in ms. */
export interface Result {
  readonly title: string;
  readonly phase: string;
  readonly turns: number;
  readonly longest: number;
  readonly p99: number;
}

interface Watched {
  readonly of: { turns: number; waits: number[] };
  inside: number;
  /** When the last caller left, or the process began. In ms of the server's clock. */
  leftAt: number;
}

/**
 * Who has a lock, as the server sees it: from lines of MONITOR about `witness-ID:inside`, which each process increments when
 * it enters, and decrements before it leaves. Each has a counter of its own, and an id that a later one does not have: so the
 * judge outlasts a process that is killed inside.
 */
export class LockWatch {
  overlaps = 0;
  readonly #watched = new Map<string, Watched>();
  readonly #results = new Map<string, { title: string; phase: string; turns: number; waits: number[] }>();
  /** Since when nobody could enter, as one that was killed may have had the lock. */
  #blockedSince: number | undefined;

  knows(id: string, phase: string, title: string): void {
    const name = `${phase} ${title}`;
    const of = this.#results.get(name) ?? { title, phase, turns: 0, waits: [] };
    this.#results.set(name, of);
    this.#watched.set(id, { of, inside: 0, leftAt: 0 });
  }

  sees(line: string): void {
    const [, seconds, command = '', id = ''] =
      /^(\d+\.\d+) \[[^\]]*\] "(incr|decr|incrby|decrby)" "witness-([^":]+):inside"/i.exec(line) ??
      /^(\d+\.\d+) \[[^\]]*\] "ECHO" "(began|ended) ([^"]+)"/.exec(line) ??
      [];
    const watched = this.#watched.get(id);
    if (watched === undefined) return;
    const at = Number(seconds) * 1_000;
    if (command === 'began') watched.leftAt = at;
    else if (command === 'ended') {
      this.#watched.delete(id);
      if (watched.inside === 0) watched.of.waits.push(at - watched.leftAt);
      // Its lock lasts until the ttl is over. That is nobody's fault.
      this.#blockedSince ??= at;
    } else if (/^incr/i.test(command)) this.#entered(watched, at);
    else {
      watched.inside--;
      watched.leftAt = at;
    }
  }

  #entered(watched: Watched, at: number): void {
    const all = [...this.#watched.values()];
    if (all.some(({ inside }) => inside > 0)) this.overlaps++;
    if (this.#blockedSince !== undefined) {
      for (const each of all) each.leftAt = Math.max(each.leftAt, Math.min(at, each.leftAt + at - this.#blockedSince));
      this.#blockedSince = undefined;
    }
    watched.inside++;
    watched.of.turns++;
    watched.of.waits.push(Math.max(0, at - watched.leftAt));
  }

  results(): Result[] {
    return [...this.#results.values()].map(({ title, phase, turns, waits }) => {
      const sorted = waits.toSorted((a, b) => a - b);
      const p99 = sorted[Math.floor(0.99 * sorted.length)] ?? 0;
      return { title, phase, turns, longest: sorted.at(-1) ?? 0, p99 };
    });
  }
}

/** ms; no wait up to this is starvation. A busy machine adds to it. */
const SHORT_WAIT = 6_000;

/** How much longer the longest wait beside Node may be: the longest of many waits differs from run to run. */
const LONGER = 1.5;

/**
 * The processes that starved beside Node: they waited for longer than as many of other languages do among themselves.
 * `delay`: ms that a busy machine may have added.
 */
export function starvedIn(results: readonly Result[], delay: number) {
  const longest = (of: string) => Math.max(0, ...results.filter(({ phase }) => phase === of).map((one) => one.longest));
  const alone = longest('alone');
  const limit = Math.max(LONGER * alone, SHORT_WAIT + delay);
  const starved = results.filter((one) => one.phase === 'beside' && one.longest > limit);
  return { ratio: longest('beside') / alone, limit, starved };
}
