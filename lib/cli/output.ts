import Table from 'cli-table3';
import type { ListedLock, LockState } from '../lock-state';
import { shown } from './durations';

/** Text in bold, on a terminal that did not refuse colours. */
function bold(text: string): string {
  const isPlain = !process.stdout.isTTY || process.env.NO_COLOR !== undefined;
  return isPlain ? text : `\u001b[1m${text}\u001b[22m`;
}

const NO_LINES = { mid: '', 'left-mid': '', 'mid-mid': '', 'right-mid': '' };

export function tableOf(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const table = new Table({ head: head.map(bold), style: { head: [], border: [] }, chars: NO_LINES });
  table.push(...rows.map((row) => row.map(printable)));
  return table.toString();
}

/** Keys and owners come from Redis: a control character in them must not reach the terminal. */
export function printable(text: string): string {
  return text.replace(/\p{C}/gu, '\ufffd');
}

/** The holder as a person reads it: the name, else the whole owner value. */
export function holderOf({ name, owner }: LockState): string {
  return name ?? owner ?? '';
}

export function waitingIn({ waiting }: LockState): string {
  return waiting === undefined ? '?' : String(waiting);
}

export function listOf(locks: readonly ListedLock[]): string {
  if (locks.length === 0) return 'No lock is held.';
  const rows = locks.map((lock) => [lock.key, holderOf(lock), shown(lock.remaining), waitingIn(lock)]);
  return tableOf(['key', 'holder', 'left', 'waiting'], rows);
}

/** JSON has no Infinity: a lock without expiry has the remaining time null. */
export function jsonOf(value: unknown): string {
  return JSON.stringify(value, (_name, part) => (part === Number.POSITIVE_INFINITY ? null : part));
}

/** On stderr. */
export function complain(message: string): void {
  process.stderr.write(`redis-locks: ${message}\n`);
}

export function print(text: string): void {
  process.stdout.write(`${text}\n`);
}
