import { withoutPassword } from '../../internal/validation';
import { UNPRINTABLE } from '../inspection/release-command';

/* What the program tells those who call it: exit codes, columns, JSON, lines of text. */

/** Exit codes, those of sysexits(3) where it has one. docs/operations.md has the list. */
export const EXIT = {
  ok: 0,
  /** The command was called wrongly. */
  usage: 64,
  /** Something that is no lock has the name of the lock: nobody can take it. */
  inTheWay: 65,
  /** Nobody holds the lock. */
  free: 66,
  /** It is not known of some locks whether they are among those that were asked for. */
  unknown: 67,
  /** Redis is not there, or refuses. */
  unavailable: 69,
  /** The command under the lock ended well, but the lock had been lost before. */
  lost: 70,
  /** What was found out could not be written. */
  notWritten: 74,
  /** The lock was not free in time. */
  notFree: 75,
  /** A server, or a key, could not be asked. */
  partial: 76,
  cannotExecute: 126,
  notFound: 127,
  /** Plus the number of the signal. */
  signal: 128,
} as const;

/** An end of the program with one line of explanation. */
export class ExitError extends Error {
  readonly exitCode: number;

  constructor(exitCode: number, message: string) {
    super(message);
    this.exitCode = exitCode;
  }
}

export function usageError(message: string): ExitError {
  return new ExitError(EXIT.usage, withoutPassword(message));
}

/** Keys and owners come from Redis: a control character in them must not reach the terminal. */
export function printable(text: string): string {
  return text.replace(UNPRINTABLE, '\ufffd');
}

/** A duration as options take it: `850ms`, `12s`, `3m20s`, `2h5m`. `null`: for ever. */
export function shown(ms: number | null): string {
  if (ms === null) return 'no expiry';
  if (ms < 1_000) return `${Math.round(ms)}ms`;
  const seconds = Math.round(ms / 1_000);
  if (seconds < 60) return `${seconds}s`;
  const minutes = Math.floor(seconds / 60);
  return minutes < 60 ? `${minutes}m${seconds % 60}s` : `${Math.floor(minutes / 60)}h${minutes % 60}m`;
}

/** How many columns of a terminal a text takes. */
function widthOf(text: string): number {
  return text
    .replace(/\p{Mn}/gu, '')
    .replace(/[\u1100-\u115f\u2e80-\ua4cf\uac00-\ud7a3\uf900-\ufaff\uff00-\uff60]|[^\0-\uffff]/gu, 'ww').length;
}

/** A text that is too wide, without its middle: keys differ at their ends, and holders too. */
function cut(text: string, width: number): string {
  if (widthOf(text) <= width) return text;
  const letters = [...text];
  let [first, last] = [Math.ceil(letters.length / 2), Math.ceil(letters.length / 2)];
  for (let left = widthOf(text); first > 0 && left >= width; ) {
    const dropped = first > letters.length - last ? --first : last++;
    left -= widthOf(letters[dropped] ?? '');
  }
  return `${letters.slice(0, first).join('')}\u2026${letters.slice(last).join('')}`;
}

/** A column that is too wide for the terminal gets as narrow as this at most. */
const NARROWEST = 8;

/**
 * Columns with two spaces between them, and a head in bold. On a terminal no line is wider than it is: the widest
 * columns are cut. A column that is empty in every row is left out.
 */
export function columns(head: readonly string[], rows: readonly (readonly string[])[]): string[] {
  const isUsed = head.map((_, i) => rows.some((row) => row[i] !== ''));
  const all = [head, ...rows.map((row) => row.map(printable))].map((row) => row.filter((_, i) => isUsed[i]));
  const widths = (all[0] ?? []).map((_, i) => all.reduce((most, row) => Math.max(most, widthOf(row[i] ?? '')), 0));
  const room = process.stdout.isTTY ? process.stdout.columns || 80 : Number.POSITIVE_INFINITY;
  const isTooWide = (): boolean => widths.reduce((sum, width) => sum + width, 2 * (widths.length - 1)) > room;
  for (let widest = Math.max(...widths); widest > NARROWEST && isTooWide(); widest = Math.max(...widths)) {
    widths[widths.indexOf(widest)] = widest - 1;
  }
  const lines = all.map((row) => {
    const cells = row.map((cell, i) => {
      const text = cut(cell, widths[i] ?? 0);
      return text + ' '.repeat((widths[i] ?? 0) - widthOf(text));
    });
    return cut(cells.join('  ').trimEnd(), room);
  });
  return [bold(lines[0] ?? ''), ...lines.slice(1)];
}

/** Text in bold, on a terminal that did not refuse colours. */
function bold(text: string): string {
  const isPlain = !process.stdout.isTTY || process.env.NO_COLOR || process.env.TERM === 'dumb';
  return isPlain ? text : `\u001b[1m${text}\u001b[22m`;
}

/** On stderr. */
export function complain(message: string): void {
  process.stderr.write(`redis-locks: ${printable(message)}\n`);
}

export function print(text: string): void {
  process.stdout.write(`${text}\n`);
}

/** One line. JSON.stringify escapes only some of the control characters: the others must not reach the terminal either. */
export function printJson(value: unknown): void {
  const codes = (text: string) =>
    text.replace(/[\s\S]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`);
  print(JSON.stringify(value).replace(/[\p{C}\p{Zl}\p{Zp}]/gu, codes));
}
