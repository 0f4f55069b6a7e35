import { constants } from 'node:os';
import { createInterface } from 'node:readline';
import { type Found, findLocks } from '../inspection/find-locks';
import { forceUnlock } from '../inspection/force-unlock';
import type { FoundLock } from '../inspection/found-lock';
import type { SeenLock } from '../inspection/history';
import { UNNAMED } from '../inspection/servers';
import { type Arguments, assertNoKey, keyOf, lockTypeOf, registryKeyOf, type Values } from './arguments';
import { columns, complain, EXIT, ExitError, print, printable, shown, usageError } from './output';
import { type Connection, connectTo } from './servers';

/** `redis-locks ls` */
export async function list(args: Arguments): Promise<number> {
  assertNoKey(args);
  return using(args.values, async (connection) => {
    const found = await look(connection, args.values);
    const { locks } = found;
    if (args.values.json) for (const lock of locks) print(JSON.stringify(lock));
    else {
      if (locks.length > 0) print(tableOf(locks).join('\n'));
      else if (found.missing.length === 0) print(noneHeld(args.values));
      if (process.stdout.isTTY || locks.length === 0) print(`Searched on ${addressesOf(found, connection)}.`);
    }
    return endOf(found, EXIT.ok);
  });
}

/** `redis-locks inspect KEY` */
export async function inspect(args: Arguments): Promise<number> {
  const key = keyOf(args);
  return using(args.values, async (connection) => {
    const found = await look(connection, args.values, key);
    const { locks } = found;
    if (args.values.json) for (const lock of locks) print(JSON.stringify(lock));
    else if (locks.length > 1)
      print([...tableOf(locks), '', `Several locks are named "${printable(key)}".`].join('\n'));
    else if (locks[0] !== undefined) print(detailsOf(locks[0]));
    if (locks.length === 0) complain(noneNamed(key, found, args.values));
    return endOf(found, locks.length > 0 ? EXIT.ok : EXIT.unavailable);
  });
}

const MEANING = `Its holder is not stopped: it learns of this when it renews the lock next.
Until then, two may be at work.`;

/** `redis-locks release KEY` */
export async function release(args: Arguments): Promise<number> {
  const { values } = args;
  const key = keyOf(args);
  if (!process.stdin.isTTY && !values.yes) {
    throw usageError('Its holder may still be at work: release asks on a terminal, and takes --yes without one');
  }
  return using(values, async (connection) => {
    const found = await look(connection, values, key);
    const [lock, ...others] = found.locks.filter(({ holder }) => holder !== null);
    if (lock === undefined || found.missing.length > 0) {
      complain(lock === undefined ? noneNamed(key, found, values) : 'Nothing was released');
      return endOf(found, EXIT.unavailable);
    }
    if (others.length > 0) {
      for (const line of tableOf(found.locks)) complain(line);
      throw usageError(`Which one of the locks named "${key}"? Nothing was released: give its whole name`);
    }
    if (!values.yes) {
      process.stderr.write(`${MEANING}\n`);
      if (!(await confirm(`Release "${printable(lock.lock)}", ${heldBy(lock)}? [y/N] `))) return EXIT.notFree;
      const [now] = (await look(connection, values, key)).locks.filter((other) => other.lock === lock.lock);
      const isOther = now !== undefined && now.owner !== lock.owner && lock.format !== 'shared';
      if (isOther) throw new ExitError(EXIT.notFree, `Nothing was released: by now it is ${heldBy(now)}`);
    }
    const isFreed = await forceUnlock(connection.client, lock, ({ message }) => complain(message));
    if (!isFreed) throw new ExitError(EXIT.unavailable, noneNamed(key, found, values));
    print(values.json ? JSON.stringify(lock) : `Released "${printable(lock.lock)}", ${heldBy(lock)}.`);
    return EXIT.ok;
  });
}

export function tableOf(locks: readonly SeenLock[]): string[] {
  const rows = locks.map((lock) => [
    lock.lock,
    lock.kind === 'lock' ? typeOf(lock) : kindOf(lock),
    holdersOf(lock),
    lock.heldFor === null ? '' : `${lock.isOlder ? '>' : ''}${shown(lock.heldFor)}`,
    lock.holder === null ? '' : shown(lock.remaining),
    lock.renewed === null ? '' : lock.renewed ? 'yes' : 'not yet',
    String(lock.waiting ?? '?'),
  ]);
  return columns(['LOCK', 'TYPE', 'HOLDER', 'HELD', 'LEFT', 'RENEWED', 'WAITING'], rows);
}

function detailsOf(lock: FoundLock): string {
  const rows = [
    ['lock', lock.lock],
    ['registryKey', lock.registryKey ?? 'not known'],
    ['kind', kindOf(lock)],
    ['type', lock.format === 'shared' ? '' : lock.types.join(' or ')],
    ['', lock.isSure ? '' : 'It only has the form of a lock: it may be data of an application.'],
    ['holder', lock.holder === null ? 'nobody' : ''],
    ...lock.holders.flatMap(({ holder, owner, remaining, isKept, permits }) => [
      [isKept ? 'unlocked by' : 'holder', holder],
      ['owner', owner],
      ['permits', permits > 1 ? String(permits) : ''],
      ['left', isKept ? `${shown(remaining)}: its minimum hold` : `${shown(remaining)}, unless it is renewed`],
    ]),
    ['held for', lock.heldFor === null ? '' : shown(lock.heldFor)],
    ['waiting', String(lock.waiting ?? 'not known')],
    ...(lock.queue ?? []).map(({ position, waiter, kind, waitingFor }) => [
      position === 1 ? 'queue' : '',
      `${position}. ${waiter}${kind === lock.kind ? '' : ` (${kind})`}${waitingFor === null ? '' : `, for ${shown(waitingFor)}`}`,
    ]),
    ['fencing token', String(lock.fencingToken ?? '')],
  ].filter(([, value]) => value !== '');
  return rows.map(([name = '', value = '']) => `${name.padEnd(15)}${printable(value)}`).join('\n');
}

function kindOf({ kind, holders, permits }: FoundLock): string {
  if (kind === 'semaphore') return `semaphore ${holders.reduce((sum, one) => sum + one.permits, 0)}/${permits ?? '?'}`;
  return kind === 'read' ? `read ${holders.length}` : kind;
}

function typeOf({ type, format, isSure }: FoundLock): string {
  return `${type ?? format}${isSure ? '' : '?'}`;
}

function holdersOf({ holder, holders, isKept }: FoundLock): string {
  if (holder === null) return 'nobody';
  return printable(`${isKept ? `kept (${holder})` : holder}${holders.length > 1 ? ` +${holders.length - 1}` : ''}`);
}

function heldBy(lock: FoundLock): string {
  return lock.isKept ? `which ${printable(String(lock.holder))} has unlocked` : `held by ${holdersOf(lock)}`;
}

export async function using(values: Values, use: (connection: Connection) => Promise<number>): Promise<number> {
  lockTypeOf(values);
  const connection = await connectTo(values);
  try {
    return await use(connection);
  } finally {
    connection.close();
  }
}

export function look({ client }: Connection, values: Values, key?: string): Promise<Found> {
  return findLocks(client, { registryKey: registryKeyOf(values), type: lockTypeOf(values), match: values.match, key });
}

/** Those of the servers, as the client knows them, or else that of the URL. */
function addressesOf({ searched }: Found, { address }: Connection): string {
  return searched.map((known) => (known === UNNAMED ? address : known)).join(', ') || 'no server';
}

/** Says what could not be asked. Nothing at all is another code than a part. */
function endOf({ missing, searched }: Found, exitCode: number): number {
  for (const reason of missing) complain(reason);
  if (searched.length === 0) return EXIT.unavailable;
  return missing.length === 0 ? exitCode : EXIT.partial;
}

function searched(values: Values): string {
  const registryKey = registryKeyOf(values);
  const where =
    registryKey === undefined
      ? 'in any registry'
      : `under "${registryKey}:" (without --registry-key, every registry is searched)`;
  return `${values.type === undefined ? '' : ` of type ${values.type}`}${values.match === undefined ? '' : ` that matches ${values.match}`} ${where}`;
}

export function noneHeld(values: Values): string {
  return printable(`No lock${searched(values)} is held.`);
}

function noneNamed(key: string, { missing }: Found, values: Values): string {
  const part = missing.length > 0 ? ', in the part that could be asked' : '';
  return `Nobody holds a lock "${key}"${searched(values)}${part}`;
}

/** The end of the input is no. */
function confirm(question: string): Promise<boolean> {
  const terminal = createInterface({ input: process.stdin, output: process.stderr });
  return new Promise<boolean>((resolve, reject) => {
    terminal.on('SIGINT', () => reject(new ExitError(EXIT.signal + constants.signals.SIGINT, 'Nothing was released')));
    terminal.on('close', () => resolve(false));
    terminal.question(question, (answer) => resolve(/^y(es)?$/i.test(answer.trim())));
  }).finally(() => terminal.close());
}
