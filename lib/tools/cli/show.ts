import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:http';
import { type AddressInfo, isIP } from 'node:net';
import { constants } from 'node:os';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { LockKeptError } from '../../api/errors';
import type { StoredKind } from '../../api/lock-types';
import { formOf, isDetached, isOfLibrary } from '../../api/owner-name';
import { SECRET } from '../../internal/validation';
import { dashboard, toNode } from '../dashboard';
import { ask, type Found, finderOf, findLocks, forceUnlock, MANY_KEYS, type Search } from '../inspection/find-locks';
import { type FoundLock, firstOwnerOf, hasOtherOwner, isClockAhead, longestHold } from '../inspection/found-lock';
import { type Change, History, type SeenLock } from '../inspection/history';
import { UNNAMED } from '../inspection/servers';
import {
  type Arguments,
  assertNoKey,
  delayOf,
  durationOf,
  keyOf,
  lockTypeOf,
  numberOf,
  orderOf,
  registryKeyOf,
  type Values,
} from './arguments';
import { chosen, databaseOf, noneHeld, noneNamed, OTHERS, saidOfObstacles, saidOfUnknown } from './choice';
import { type Connection, connectTo } from './connect';
import { columns, complain, EXIT, ExitError, print, printable, printJson, shown, usageError } from './output';

const UNSURE = '?: may be data of an application.';

/** `redis-locks ls` */
export async function list(args: Arguments): Promise<number> {
  assertNoKey(args);
  return using(args.values, async (connection) => {
    const found = await look(connection, args.values);
    const { locks, unknown } = chosen(found.locks, args.values);
    const where = searchedOn(found, connection, locks.length === 0);
    if (args.values.json) {
      for (const lock of locks) printJson(lock);
      if (locks.length === 0) complain(where);
    } else {
      if (locks.length > 0) print(tableOf(locks).join('\n'));
      else if (found.missing.length === 0) print(noneHeld(args.values, unknown.length === 0));
      if (process.stdout.isTTY && locks.some(({ isSure }) => !isSure)) {
        print(registryKeyOf(args.values) === undefined ? `${UNSURE} --registry-key KEY shows the holders.` : UNSURE);
      }
      if (process.stdout.isTTY && locks.length > 0 && !registryKeyOf(args.values)) print(OTHERS);
      if (process.stdout.isTTY || locks.length === 0) print(`${where}.`);
    }
    if (unknown.length > 0) complain(saidOfUnknown(unknown, args.values));
    return endOf(found, unknown.length > 0 ? EXIT.unknown : EXIT.ok);
  });
}

/** `redis-locks inspect KEY` */
export async function inspect(args: Arguments): Promise<number> {
  const key = keyOf(args);
  return using(args.values, async (connection) => {
    const found = await look(connection, args.values, key);
    const { locks } = found;
    if (args.values.json) for (const lock of locks) printJson(lock);
    else if (locks.length > 1)
      print([...tableOf(locks), '', `Several locks are named "${printable(key)}".`].join('\n'));
    else if (locks[0] !== undefined) print(detailsOf(locks[0], args.values));
    if (locks.length > 0) return endOf(found, EXIT.ok);
    if (args.values.json)
      for (const { name, remaining, type } of found.obstacles)
        printJson({ lock: name, kind: 'in the way', keyType: type, remaining });
    return endOf(found, saidOfNone(key, found, args.values, connection));
  });
}

const ONLY_ITS_FORM = 'It only has the form of a lock: it may be data of an application.';

const MEANING = `Its holder is not stopped: it is told, if its process has an inbox, or else
learns of this when it renews the lock next. Until then, two may be at work.`;

/** `redis-locks release KEY` */
export async function release(args: Arguments): Promise<number> {
  const { values } = args;
  const key = keyOf(args);
  if (!process.stdin.isTTY && !values.yes) {
    throw usageError('Its holder may still be at work: release asks on a terminal, and takes --yes without one');
  }
  return using(values, async (connection) => {
    const found = await look(connection, values, key);
    const lock = heldOf(key, found, values, connection, 'released');
    if (typeof lock === 'number') return lock;
    const isWholeName = registryKeyOf(values) !== undefined || key === lock.lock;
    if (!lock.isCertain && !(isWholeName && (values['may-be-data'] || !values.yes))) {
      const wanted = `give ${isWholeName ? '' : 'its whole name, and '}--may-be-data to delete it`;
      throw usageError(`Nothing was released: "${lock.lock}" may be data of an application; ${wanted}`);
    }
    if (!values.yes) {
      process.stderr.write(`${lock.isCertain ? MEANING : `${ONLY_ITS_FORM}\nA release deletes it.`}\n`);
      if (!(await confirm(`Release "${printable(lock.lock)}", ${heldBy(lock)}?\n[y/N] `))) return EXIT.notFree;
      const [now] = (await look(connection, values, key)).locks.filter((other) => other.lock === lock.lock);
      if (now !== undefined && hasOtherOwner(lock, now)) {
        const other = now.isSure ? heldBy(now) : 'another one';
        throw new ExitError(EXIT.notFree, `Nothing was released: by now it is ${other}`);
      }
    }
    const { held, told } = await forceUnlock(connection.client, lock, ({ message }) => complain(message)).catch(
      (error) => {
        if (!(error instanceof LockKeptError)) throw error;
        throw new ExitError(EXIT.notFree, 'Nothing was released: by now it is another one');
      },
    );
    if (!held) throw new ExitError(EXIT.free, noneNamed(key, found, values, connection));
    if (values.json) printJson({ ...lock, told: told ?? null });
    else print(`Released "${printable(lock.lock)}", ${heldBy(lock)}.${isAtWork(lock) ? saidOfTold(told) : ''}`);
    return EXIT.ok;
  });
}

/** `redis-locks ask KEY` */
export async function askFor(args: Arguments): Promise<number> {
  const { values } = args;
  const key = keyOf(args);
  return using(values, async (connection) => {
    const found = await look(connection, values, key);
    const lock = heldOf(key, found, values, connection, 'asked');
    if (typeof lock === 'number') return lock;
    const told = await ask(connection.client, lock, values.why ?? '', values.name);
    if (values.json) printJson({ ...lock, told });
    else print(`Asked for "${printable(lock.lock)}", ${heldBy(lock)}.${saidOfTold(told)}`);
    return told ? EXIT.ok : EXIT.notFree;
  });
}

/** The one lock of this name that is held; else the exit code, and it is said why. */
function heldOf(
  key: string,
  found: Found,
  values: Values,
  connection: Connection,
  done: 'released' | 'asked',
): FoundLock | number {
  const [lock, ...others] = found.locks.filter(({ holder }) => holder !== null);
  if (lock === undefined) return endOf(found, saidOfNone(key, found, values, connection));
  if (found.missing.length > 0) {
    complain(`Nothing was ${done}`);
    return endOf(found, EXIT.free);
  }
  if (others.length === 0) return lock;
  process.stderr.write(`${tableOf(found.locks).join('\n')}\n`);
  throw usageError(`Which one of the locks named "${key}"? Nothing was ${done}: give its whole name`);
}

/** A process of this library may run a task under it. */
function isAtWork({ isSure, isKept, owner }: FoundLock): boolean {
  return isSure && !isKept && isOfLibrary(owner ?? '') && !isDetached(owner ?? '');
}

function saidOfTold(told: boolean | undefined): string {
  const how = told ? 'was' : told === false ? 'could not be' : 'may not have been';
  return ` Its process ${how} told.`;
}

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
  // The reader has gone away: see program.ts.
  process.stdout.on('error', end);
  const isLive = process.stdout.isTTY && !values.json;
  const history = new History();
  const chosenNames = () => new Set(chosen(history.seen(performance.now()), values).locks.map(({ lock }) => lock));
  const lines: string[] = [];
  let complaint = '';
  let isCostSaid = false;
  let isUnknownSaid = false;
  return using(values, async (connection) => {
    const stopped = once(stop.signal, 'abort').then(() => undefined);
    // All types: that of a held lock may show later, and the lock is not free then.
    const find = finderOf(connection.client, { ...searchOf(values), type: undefined });
    while (!stop.signal.aborted) {
      const askedAt = performance.now();
      const found = await Promise.race([find(), stopped]);
      if (found === undefined) break;
      const cost = isCostSaid ? undefined : costOf(found, values);
      if (cost !== undefined) {
        isCostSaid = true;
        isLive ? lines.unshift(cost) : complain(cost);
      }
      const { locks, missing } = found;
      const before = chosenNames();
      // In a part of the locks, the others would look free.
      const all = missing.length > 0 ? [] : history.update(locks, performance.now(), askedAt);
      const after = chosenNames();
      const changes = all.filter(({ lock }) => before.has(lock) || after.has(lock));
      lines.unshift(...changes.map(lineOf).reverse());
      lines.splice(LINES);
      if (isLive) process.stdout.write(CLEAR + screenOf(found, history, lines, values, connection).join('\n'));
      else {
        const { unknown } = chosen(history.seen(performance.now()), values);
        if (unknown.length > 0 && !isUnknownSaid) complain(saidOfUnknown(unknown, values));
        isUnknownSaid ||= unknown.length > 0;
        for (const change of changes) values.json ? printJson({ ...change, owner: undefined }) : print(lineOf(change));
        if (missing.join() !== complaint) for (const reason of missing) complain(reason);
        complaint = missing.join();
      }
      // The promise rejects when the watch is ended.
      await sleep(interval, undefined, { signal: stop.signal }).catch(() => undefined);
    }
    // The prompt of the shell begins a line.
    if (isLive) process.stdout.write('\n');
    return EXIT.ok;
  });
}

/** At most as many lines as the terminal has: the head of the table stays. */
function screenOf(
  found: Found,
  history: History,
  changes: readonly string[],
  values: Values,
  connection: Connection,
): string[] {
  const { locks, missing } = found;
  const choice = chosen(missing.length > 0 ? locks : history.seen(performance.now()), values);
  const [head = '', ...rows] = tableOf(choice.locks);
  const unknown = choice.unknown.length > 0 ? [saidOfUnknown(choice.unknown, values)] : [];
  // A terminal without a size says 0.
  const { columns: width, rows: height } = { columns: process.stdout.columns || 80, rows: process.stdout.rows || 24 };
  const below = ['', ...missing, ...unknown, ...changes].slice(0, Math.max(0, height - 3));
  const rest = below.map((line) => printable(line).slice(0, width));
  const room = Math.max(1, height - 2 - rest.length);
  const isCut = rows.length > room;
  if (rows.length === 0 && missing.length === 0)
    rows.push(`${noneHeld(values, unknown.length === 0)} ${searchedOn(found, connection, true)}.`);
  return [head, ...(isCut ? [...rows.slice(0, room), `and ${rows.length - room} more`] : rows), ...rest];
}

function lineOf({ at, lock, what, holder }: Change): string {
  const described = {
    taken: `taken by ${holder}`,
    'passed on': `passed on to ${holder}`,
    kept: `unlocked by ${holder}, and kept until its minimum hold ends`,
    detached: `detached by ${holder}, until it is adopted`,
    entered: `${holder} has entered`,
    left: `${holder} has left`,
    free: `free (was held by ${holder})`,
  };
  return printable(`${at.toTimeString().slice(0, 8)} ${lock}: ${described[what]}`);
}

/** `redis-locks ui`: until SIGINT or SIGTERM. */
export async function ui(args: Arguments): Promise<number> {
  assertNoKey(args);
  const { values } = args;
  const { actions = false, host = '127.0.0.1', token = randomBytes(16).toString('base64url') } = values;
  const isLoopback = host === 'localhost' || host === '::1' || (isIP(host) === 4 && host.startsWith('127.'));
  if (!isLoopback && values.token === undefined) {
    throw usageError(`Others can reach ${host}: give a --token of at least 16 characters`);
  }
  if (!SECRET.test(token))
    throw usageError('--token takes at least 16 characters of ASCII, without a space at its ends');
  return using(values, async ({ client }) => {
    const page = dashboard(client, { token, actions, registryKey: registryKeyOf(values) });
    const server = createServer(toNode(page));
    await new Promise<void>((resolve, reject) => {
      server.once('error', ({ message }) => reject(new ExitError(EXIT.unavailable, `It cannot listen: ${message}`)));
      server.listen(numberOf(values, 'port', 0, 0, 65_535), host, resolve);
    });
    const { address, family, port } = server.address() as AddressInfo;
    const url = `http://${family === 'IPv6' ? `[${address}]` : address}:${port}/#token=${encodeURIComponent(token)}`;
    if (values.json) printJson({ url });
    else print(`The locks are shown at ${url}`);
    await new Promise((resolve) => process.once('SIGINT', resolve).once('SIGTERM', resolve));
    server.close().closeAllConnections();
    page[Symbol.dispose]();
    return EXIT.ok;
  });
}

function tableOf(locks: readonly SeenLock[]): string[] {
  const rows = locks.map((lock) => {
    const { heldFor, isOlder } = longestHold(lock);
    return [
      lock.lock,
      lock.kind === 'lock' ? `${lock.typeName.replace(/(, .*)? or .*/, '…')}${lock.isSure ? '' : '?'}` : kindOf(lock),
      holdersOf(lock),
      heldFor === null ? (lock.holders.some(isClockAhead) ? '?' : '') : `${isOlder ? '>' : ''}${shown(heldFor)}`,
      lock.holder === null ? '' : shown(lock.remaining),
      lock.renewed === null ? '' : lock.renewed ? 'yes' : 'not yet',
      waitingFor(lock) ?? '?',
    ];
  });
  return columns(['LOCK', 'TYPE', 'HOLDER', 'HELD', 'LEFT', 'RENEWED', 'WAITING'], rows);
}

function detailsOf(lock: FoundLock, values: Values): string {
  const isShownWithKey = !lock.isSure && registryKeyOf(values) === undefined;
  const form = formOf(firstOwnerOf(lock) ?? '');
  const rows = [
    ['lock', lock.lock],
    ['registryKey', lock.registryKey === '' ? "''" : (lock.registryKey ?? 'not known')],
    ['kind', kindOf(lock)],
    ['type', lock.typeName],
    ['', form === undefined ? '' : `as ${form.libraries} write it`],
    ['', lock.isCertain ? '' : ONLY_ITS_FORM],
    ['', isShownWithKey ? '--registry-key shows its value, if its name begins with that.' : ''],
    ['holder', lock.holder === null ? 'nobody' : ''],
    ...lock.holders.flatMap(({ holder, owner, remaining, isKept, permits, heldFor, acquiredAt }) => [
      [isKept ? 'unlocked by' : isDetached(owner) ? 'detached by' : 'holder', holder],
      ['owner', lock.isSure ? owner : ''],
      ['permits', permits > 1 ? String(permits) : ''],
      [
        'held for',
        isClockAhead({ acquiredAt, heldFor })
          ? 'not known: the clock of its process is ahead of that of Redis'
          : heldFor === null
            ? ''
            : shown(heldFor),
      ],
      [
        'left',
        `${shown(remaining)}${remaining === null ? '' : isKept ? ': its minimum hold' : `, unless it is ${isDetached(owner) ? 'adopted' : 'renewed'}`}`,
      ],
    ]),
    ['waiting', waitingFor(lock) ?? 'not known'],
    ...(lock.queue ?? []).map(({ position, waiter, kind, waitingFor }) => [
      position === 1 ? 'queue' : '',
      `${position}. ${waiter}${kind === lock.kind ? '' : ` (${kind})`}${waitingFor === null ? '' : `, for ${shown(waitingFor)}`}`,
    ]),
    ['fencing token', String(lock.fencingToken ?? '')],
    ['to delete it', lock.isCertain || lock.holder === null ? '' : 'release, with --may-be-data'],
  ].filter(([, value]) => value !== '');
  return rows.map(([name = '', value = '']) => `${name.padEnd(15)}${printable(value)}`).join('\n');
}

const kinds: Readonly<Record<StoredKind, (lock: FoundLock) => string>> = {
  lock: () => 'lock',
  semaphore: ({ holders, permits }) =>
    `semaphore ${holders.reduce((sum, one) => sum + one.permits, 0)}/${permits ?? '?'}`,
  read: ({ holders }) => `read ${holders.length}`,
  write: () => 'write',
};

function kindOf(lock: FoundLock): string {
  return kinds[lock.kind](lock);
}

function waitingFor({ waiting, isWaitingExact }: FoundLock): string | undefined {
  return waiting === null ? undefined : `${isWaitingExact || waiting === 0 ? '' : '≤'}${waiting}`;
}

function holdersOf({ holder, holders, isKept, owner }: FoundLock): string {
  if (holder === null) return 'nobody';
  const state = isKept ? 'kept' : isDetached(owner ?? '') ? 'detached' : undefined;
  return printable(
    `${state === undefined ? holder : `${state} (${holder})`}${holders.length > 1 ? ` +${holders.length - 1}` : ''}`,
  );
}

function heldBy(lock: FoundLock): string {
  if (!lock.isSure) return 'whose holder is not shown';
  const did = lock.isKept ? 'unlocked' : isDetached(lock.owner ?? '') ? 'detached' : undefined;
  return did === undefined ? `held by ${holdersOf(lock)}` : `which ${printable(String(lock.holder))} has ${did}`;
}

async function using(values: Values, use: (connection: Connection) => Promise<number>): Promise<number> {
  lockTypeOf(values);
  orderOf(values);
  durationOf(values, 'longer-than', 0);
  const connection = await connectTo(values);
  try {
    return await use(connection);
  } finally {
    connection.close();
  }
}

function searchOf(values: Values, key?: string): Search {
  return { registryKey: registryKeyOf(values), type: lockTypeOf(values), match: values.match, key };
}

async function look({ client }: Connection, values: Values, key?: string): Promise<Found> {
  const found = await findLocks(client, searchOf(values, key));
  const cost = costOf(found, values);
  if (cost !== undefined) complain(cost);
  return found;
}

function costOf({ keys }: Found, values: Values): string | undefined {
  if (keys <= MANY_KEYS || registryKeyOf(values) !== undefined) return undefined;
  return `It looked at ${keys} keys. With --registry-key KEY it reads those of one registry only`;
}

/** The servers, as the client knows them, or else by the URL; where nothing was found, also the database. */
function searchedOn({ searched }: Found, connection: Connection, isNothing: boolean): string {
  const { address } = connection;
  const servers = searched.map((known) => (known === UNNAMED ? address : known)).join(', ') || 'no server';
  return `Searched on ${servers}${isNothing ? databaseOf(connection) : ''}`;
}

/** Says what could not be asked. Nothing at all is another code than a part. */
function endOf({ missing, searched }: Found, exitCode: number): number {
  for (const reason of missing) complain(reason);
  if (searched.length === 0) return EXIT.unavailable;
  return missing.length === 0 ? exitCode : EXIT.partial;
}

/** Says that there is no such lock, or what is in its way; where nothing could be asked, that is said alone. */
function saidOfNone(key: string, found: Found, values: Values, connection: Connection): number {
  const lines = saidOfObstacles(found.obstacles, values, connection);
  if (lines.length === 0 && found.searched.length > 0) lines.push(noneNamed(key, found, values, connection));
  for (const line of lines) complain(line);
  return found.obstacles.length > 0 ? EXIT.inTheWay : EXIT.free;
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
