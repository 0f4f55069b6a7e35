import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Found } from '../inspection/find-locks';
import { type Change, History } from '../inspection/history';
import { type Arguments, assertNoKey, delayOf, type Values } from './arguments';
import { complain, EXIT, print, printable } from './output';
import { look, noneHeld, tableOf, using } from './show';

/** Lines of history below the table, and what `watch` clears the terminal with. */
const LINES = 8;
const CLEAR = '\u001b[H\u001b[2J';

/** `redis-locks watch`: until SIGINT or SIGTERM. */
export async function watch(args: Arguments): Promise<number> {
  assertNoKey(args);
  const { values } = args;
  const interval = Math.max(10, delayOf(values, 'interval', 1_000));
  const stop = new AbortController();
  const end = (): void => stop.abort();
  process.on('SIGINT', end);
  process.on('SIGTERM', end);
  // The reader has gone away: see main.ts.
  process.stdout.on('error', end);
  const isLive = process.stdout.isTTY && !values.json;
  const history = new History();
  const lines: string[] = [];
  let complaint = '';
  return using(values, async (connection) => {
    const stopped = once(stop.signal, 'abort').then(() => undefined);
    while (!stop.signal.aborted) {
      const found = await Promise.race([look(connection, values), stopped]);
      if (found === undefined) break;
      const { locks, missing } = found;
      // In a part of the locks, the others would look free.
      const changes = missing.length > 0 ? [] : history.update(locks, performance.now());
      lines.unshift(...changes.map(lineOf).reverse());
      lines.splice(LINES);
      if (isLive) process.stdout.write(CLEAR + screenOf(found, history, lines, values).join('\n'));
      else {
        for (const change of changes) print(values.json ? JSON.stringify(change) : lineOf(change));
        if (missing.join() !== complaint) for (const reason of missing) complain(reason);
        complaint = missing.join();
      }
      // It rejects when the watch is ended.
      await sleep(interval, undefined, { signal: stop.signal }).catch(() => undefined);
    }
    return EXIT.ok;
  });
}

/** As many lines as the terminal has: the head of the table stays. */
function screenOf({ locks, missing }: Found, history: History, changes: readonly string[], values: Values): string[] {
  const [head = '', ...rows] = tableOf(missing.length > 0 ? locks : history.seen(performance.now()));
  // A terminal without a size says 0.
  const { columns: width, rows: height } = { columns: process.stdout.columns || 80, rows: process.stdout.rows || 24 };
  const rest = ['', ...missing, ...changes].map((line) => printable(line).slice(0, width));
  const room = Math.max(1, height - 2 - rest.length);
  const isCut = rows.length > room;
  if (rows.length === 0 && missing.length === 0) rows.push(noneHeld(values));
  return [head, ...(isCut ? [...rows.slice(0, room), `and ${rows.length - room} more`] : rows), ...rest];
}

function lineOf({ at, lock, what, holder }: Change): string {
  const described = {
    taken: `taken by ${holder}`,
    'passed on': `passed on to ${holder}`,
    kept: `unlocked by ${holder}, and kept until its minimum hold ends`,
    entered: `${holder} has entered`,
    left: `${holder} has left`,
    free: `free (was held by ${holder})`,
  };
  return printable(`${at.toTimeString().slice(0, 8)} ${lock}: ${described[what]}`);
}
