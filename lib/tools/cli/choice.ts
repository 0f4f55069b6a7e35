import { type Found, splitOf } from '../inspection/find-locks';
import { type FoundLock, longestHold, mayBeOf, type Obstacle } from '../inspection/found-lock';
import { releaseCommand, shellWord } from '../inspection/release-command';
import { durationOf, lockTypeOf, orderOf, registryKeyOf, type Values } from './arguments';
import type { Connection } from './connect';
import { printable, shown } from './output';

/* Which of the locks that were found are shown, and what is said of the others, and where none was found. */

/** What `--type`, `--longer-than` and `--waiting` leave, in the order of `--sort`. */
interface Choice<T extends FoundLock> {
  readonly locks: readonly T[];
  /** It is not known of these whether they are among them. */
  readonly unknown: readonly T[];
}

export function chosen<T extends FoundLock>(locks: readonly T[], values: Values): Choice<T> {
  const least = durationOf(values, 'longer-than', -1);
  const order = orderOf(values);
  const type = lockTypeOf(values);
  const isChosen = (lock: FoundLock): boolean | undefined => {
    const answers = [isHeldFor(least, lock), !values.waiting || isWaitedFor(lock)];
    if (!mayBeOf(lock, type) || answers.includes(false)) return false;
    return answers.includes(undefined) ? undefined : true;
  };
  const left = locks.filter((lock) => isChosen(lock) === true);
  const ranks = {
    held: (lock: FoundLock) => -(longestHold(lock).heldFor ?? -1),
    waiting: ({ waiting }: FoundLock) => -(waiting ?? -1),
    left: ({ remaining }: FoundLock) => remaining ?? Number.MAX_VALUE,
  };
  return {
    locks: order === undefined ? left : left.sort((one, other) => ranks[order](one) - ranks[order](other)),
    unknown: locks.filter((lock) => isChosen(lock) === undefined),
  };
}

/** `undefined`: it is not known. */
function isHeldFor(least: number, lock: FoundLock): boolean | undefined {
  if (least < 0 || (longestHold(lock).heldFor ?? -1) >= least) return true;
  return lock.holders.some(({ heldFor }) => heldFor === null) ? undefined : false;
}

function isWaitedFor({ waiting }: FoundLock): boolean | undefined {
  return waiting === null ? undefined : waiting > 0;
}

/** How many names a message has at most. */
const NAMED = 5;

function listed(names: readonly string[]): string {
  const more = names.length > NAMED ? ` and ${names.length - NAMED} more` : '';
  return `${names.slice(0, NAMED).join(', ')}${more}`;
}

/** Why it is not known of some locks whether they are among those that were asked for. */
export function saidOfUnknown(unknown: readonly FoundLock[], values: Values): string {
  const isWaitedFor = 'whether anybody waits: waiters of spin, and pollers, cannot be seen';
  const isLong = 'for how long it is held: Java does not say it, and a clock that is ahead says it wrongly';
  const what = [values.waiting ? isWaitedFor : '', values['longer-than'] === undefined ? '' : isLong];
  return `It is not known of ${listed(unknown.map(({ lock }) => lock))} ${what.filter(Boolean).join('; or ')}`;
}

/**
 * `, database 0`, and which others have keys, where the server says it: they are not searched. Nothing of a cluster, which
 * has one.
 */
export function databaseOf({ database, databases }: Connection): string {
  if (database === undefined) return '';
  const others = databases.filter((one) => one !== database);
  const more = others.length === 0 ? '' : ` (there are keys in database ${listed(others.map(String))} too)`;
  return `, database ${database}${more}`;
}

/** `anywhere`: in place of a registryKey. */
function searched(values: Values, anywhere = ' in any registry'): string {
  const registryKey = registryKeyOf(values);
  // Without one, or with an empty one, every name is searched.
  const where = registryKey
    ? ` under "${registryKey}:" (without --registry-key, every registry is searched)`
    : anywhere;
  return `${values.type === undefined ? '' : ` of type ${values.type}`}${values.match === undefined ? '' : ` that matches ${values.match}`}${where}`;
}

/** Where no registryKey is asked for, other programs may have locks too. */
const OF_OURS = ' of this library or of Java';
export const OTHERS = 'Strings of other programs are looked at with --registry-key KEY only.';
/** The same on the line that says that nothing is held. */
const FINDS_OTHERS = '--registry-key KEY finds others too.';

/** `isKnown`: of each lock that was found, it is known that it is not among those that were asked for. */
export function noneHeld(values: Values, isKnown: boolean): string {
  const least = values['longer-than'];
  const held = `${isKnown ? 'is' : 'is known to be'} held${least === undefined ? '' : ` for longer than ${least}`}${values.waiting ? ' and waited for' : ''}`;
  if (registryKeyOf(values)) return printable(`No lock${searched(values)} ${held}.`);
  return printable(`No lock${searched(values, OF_OURS)} ${held}. ${FINDS_OTHERS}`);
}

export function noneNamed(key: string, { missing }: Found, values: Values, connection: Connection): string {
  const part = missing.length > 0 ? ', in the part that could be asked' : '';
  return `Nobody holds a lock "${key}"${searched(values)}${part}${databaseOf(connection)}`;
}

/** The keys that have the name of a lock and are none, and how to remove them. Their values may be secrets. */
export function saidOfObstacles(obstacles: readonly Obstacle[], values: Values, { database }: Connection): string[] {
  return obstacles.slice(0, NAMED).map(({ form, isLock, name, remaining, type }) => {
    const end = remaining === null ? 'without expiry' : `that expires in ${shown(remaining)}`;
    const it = `"${name}" is in the way: a ${type} ${end}`;
    if (isLock) return `${it}, which is a lock, and not of type ${values.type}: look without --type`;
    const select = database === undefined || database === 0 ? '' : `-n ${database} `;
    const remove = `redis-cli ${select}UNLINK ${shellWord(name)}`;
    const whose = `of another program${form === undefined ? '' : `, ${form}`}`;
    const found = `${it}, ${whose}. While it is there, no lock of this name can be taken.`;
    if (form === undefined) return `${found} To remove it: ${remove}`;
    // A string may be the lock of a program in another language.
    const [registryKey, key] = splitOf({ lock: name, registryKey: null, key: null });
    const release = releaseCommand(key, registryKey);
    return `${found} If it is a lock, its holder may be at work. To remove it: ${release}`;
  });
}
