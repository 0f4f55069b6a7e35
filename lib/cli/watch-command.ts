import { setTimeout as sleep } from 'node:timers/promises';
import type { ListedLock } from '../lock-state';
import { messageOf } from '../redis/failure';
import type { Arguments } from './arguments';
import { durationOf, shown } from './durations';
import { EXIT, ExitError } from './exit-codes';
import { type Change, History } from './history';
import { complain, holderOf, jsonOf, print, printable, tableOf, waitingIn } from './output';
import { openSession } from './session';

/** Lines of history below the table. */
const LINES = 10;

/** Clears the terminal, and puts the cursor to its start. */
const CLEAR = '\u001b[H\u001b[2J';

/** `redis-locks watch`: until SIGINT or SIGTERM. */
export async function watch({ values, operands }: Arguments): Promise<number> {
  if (operands.length > 0) throw new ExitError(EXIT.usage, 'redis-locks watch takes no KEY; --match takes a pattern');
  const interval = durationOf('interval', values.interval ?? '1s');
  const session = await openSession(values);
  const stop = new AbortController();
  const end = (): void => stop.abort();
  process.on('SIGINT', end);
  process.on('SIGTERM', end);
  // The reader has gone away, as with `| head`.
  process.stdout.on('error', end);
  const isLive = process.stdout.isTTY && !values.json;
  const history = new History();
  const lines: string[] = [];
  try {
    while (!stop.signal.aborted) {
      let locks: ListedLock[] = [];
      let trouble = '';
      try {
        locks = await session.list(values.match);
        for (const change of history.update(locks, performance.now())) {
          lines.push(lineOf(change));
          if (!isLive) print(values.json ? jsonOf(change) : lineOf(change));
        }
      } catch (error) {
        trouble = messageOf(error);
      }
      if (lines.length > LINES) lines.splice(0, lines.length - LINES);
      if (isLive) process.stdout.write(screenOf(locks, history, lines, trouble));
      else if (trouble !== '') complain(trouble);
      // It rejects when the watch is ended.
      await sleep(interval, undefined, { signal: stop.signal }).catch(() => undefined);
    }
    return EXIT.ok;
  } finally {
    process.off('SIGINT', end);
    process.off('SIGTERM', end);
    await session.close();
  }
}

function screenOf(locks: readonly ListedLock[], history: History, lines: readonly string[], trouble: string): string {
  const now = performance.now();
  const rows = locks.map((lock) => {
    const { ms, isOlder } = history.heldFor(lock.key, now);
    const heldFor = `${isOlder ? 'over ' : ''}${shown(ms)}`;
    return [lock.key, holderOf(lock), heldFor, shown(lock.remaining), waitingIn(lock)];
  });
  const table = trouble || tableOf(['key', 'holder', 'held for', 'left', 'waiting'], rows);
  const text = `${table}\n${rows.length === 0 && trouble === '' ? 'No lock is held.\n' : ''}\n${lines.join('\n')}\n`;
  return CLEAR + text.replaceAll('\n', '\r\n');
}

function lineOf({ at, key, what, holder }: Change): string {
  const described = {
    taken: `taken by ${holder}`,
    'passed on': `passed on to ${holder}`,
    free: `free (was held by ${holder})`,
  };
  return printable(`${at.toTimeString().slice(0, 8)} ${key}: ${described[what]}`);
}
