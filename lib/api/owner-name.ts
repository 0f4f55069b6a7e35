import { hostname } from 'node:os';
import { expected, nonEmptyString } from '../internal/validation';

/*
 * What a person can read in an owner value. It is `<name>:<random>:<time>`, and with the Redisson types
 * `<name>/<random>:<time>`, since Redisson's format has one colon: that before a number. The time is that of the attempt
 * which acquired the lock, in microseconds by the clock of its process. Versions before this one counted from 1 there.
 * `fair` may add `@<server time>`, that of the grant. `*<number>` says how many permits of a semaphore it has. A lock that
 * was unlocked before its `minHold` ended has `kept@` before all of that, one whose lease was detached `detached@`.
 */

/** What separates the name from the random part. */
export type NameSeparator = ':' | '/';

/** bytes of UTF-8; an owner value goes with every command. */
const LONGEST = 64;

/** Spaces and `@` separate the parts of the messages and owner values of `fair`; braces make hash tags in channels. */
const UNSUITABLE = /[\p{C}\p{Z}@{}]/gu;

/** The random part: 16 bytes as base64url. */
const OWNER = /^(.+)[:/][\w-]{22}:(\d+)(?:@(\d+)|\*(\d+))?$/;

/** Microseconds; a number below it is no time. */
const LEAST_TIME = 1e15;

const UUID = '[\\da-f]{8}(-[\\da-f]{4}){3}-[\\da-f]{12}';
/** The owner values of Spring Integration, and of Redisson. */
export const SPRINGS = new RegExp(`^${UUID}$`, 'i');
export const REDISSONS = new RegExp(`^${UUID}:\\d+$`, 'i');

/**
 * Forms of the values that lock libraries of others write, and which of these write them. Only forms that data of an
 * application hardly has by chance. A value that is no text comes from a script with hex digits in braces, else with U+FFFD.
 */
const FORMS: readonly (readonly [form: RegExp, name: string, libraries: string])[] = [
  [SPRINGS, 'UUID', 'Spring, redis-semaphore, pottery and sherlock'],
  [/^[\da-f]{32}$/, '32 hex digits', 'redis-py, redlock and redlock-universal'],
  [/^[A-Za-z\d+/]{22}==$/, 'base64', 'redsync'],
  [/^ADDED:\d{4}-\d\d-\d\dT[\d:.]+Z@/, 'ADDED, a time and a host', 'ShedLock'],
  [/\{[\da-f]{2}\}|\ufffd/, 'bytes that are no text', 'rslock, rueidislock and walrus'],
];

/** The form of a value that is not of this library, and who writes such; `undefined`: none that is known. */
export function formOf(value: string): { readonly name: string; readonly libraries: string } | undefined {
  if (isOfLibrary(value)) return undefined;
  const [, name, libraries] = FORMS.find(([form]) => form.test(value)) ?? [];
  return name === undefined || libraries === undefined ? undefined : { name, libraries };
}

/** The form in words, which say nothing of the value: it may be a secret. */
export function describeForm(value: string): string {
  const form = formOf(value);
  return form === undefined ? 'in no form that is known' : `in the form of ${form.libraries} (${form.name})`;
}

/** Checks the option `name`. */
export function registryName(name: string, value: unknown): string {
  const text = nonEmptyString(name, value);
  if (text.search(UNSUITABLE) >= 0) {
    throw new RangeError(expected(name, 'without spaces, control characters, "@" and braces', value));
  }
  if (Buffer.byteLength(text) > LONGEST) throw new RangeError(expected(name, `of at most ${LONGEST} bytes`, value));
  return text;
}

/** Throws `RangeError` for a name that does not fit into the owner values of a lock type. */
export function assertNameFits(name: string, separator: NameSeparator): void {
  if (separator === '/' && name.includes(':')) {
    throw new RangeError(expected('name', 'without ":" for the Redisson types, whose format has it elsewhere', name));
  }
}

/** `<hostname>:<pid>`, or with the other separator. */
export function defaultName(separator: NameSeparator): string {
  const process = `${separator}${globalThis.process.pid}`;
  let host = hostname().replace(UNSUITABLE, '-').replace(/[:/]/g, '-') || 'unnamed';
  while (Buffer.byteLength(host + process) > LONGEST) host = [...host].slice(0, -1).join('');
  return host + process;
}

/** The part of the owner values of one registry before the number. `uuid` makes it unique. */
export function registryId(name: string, separator: NameSeparator, uuid: string): string {
  return `${name}${separator}${Buffer.from(uuid.replaceAll('-', ''), 'hex').toString('base64url')}`;
}

/** The name in an owner value; `undefined` where it is not of this library. */
export function nameIn(owner: string): string | undefined {
  return OWNER.exec(holderOf(owner))?.[1];
}

/** Whether an owner value is of this library. */
export function isOfLibrary(owner: string): boolean {
  return nameIn(owner) !== undefined;
}

/**
 * Whether the value of a key has the form of an owner value, of this library or of a Java service. Any other may be data
 * of an application, and a secret.
 */
export function isOwner(value: string): boolean {
  return OWNER.test(value) || SPRINGS.test(value) || REDISSONS.test(value);
}

/** How many permits of a semaphore an owner has. */
export function permitsIn(owner: string): number {
  return Number(OWNER.exec(holderOf(owner))?.[4] ?? 1);
}

/** When the lock was acquired, in ms since 1970; `undefined` where the owner value does not say it. */
export function acquiredAtIn(owner: string): number | undefined {
  const [, , attempt, grant = attempt] = OWNER.exec(holderOf(owner)) ?? [];
  return Number(grant) >= LEAST_TIME ? Math.floor(Number(grant) / 1_000) : undefined;
}

/** Whether it is the default name of this process. */
export function isNamedByDefault(name: string | undefined): boolean {
  return name !== undefined && (name === defaultName(':') || name === defaultName('/'));
}

/** The id of the registry whose owner value it is, or of the process of a Java service; `undefined`: it is none. */
export function registryIn(owner: string): string | undefined {
  const end = owner.lastIndexOf(':');
  return isOwner(owner) && !isWithoutHolder(owner) && end > 0 ? owner.slice(0, end) : undefined;
}

/** Whether the owner value is of the registry with this id. */
export function isOfRegistry(owner: string, id: string): boolean {
  return owner.startsWith(`${id}:`);
}

/**
 * What the owner value of a lock begins with that was unlocked before its `minHold` ended. Its key stays until then. With
 * this value no later command for the lease matches it: no renewal, no release, no repeated attempt. It belongs to
 * nobody, and ends by itself. Names of registries have no "@", so no other owner value begins like this.
 */
export const KEPT = 'kept@';

/** Whether the owner value is that of a lock that was unlocked, and is kept. */
export function isKept(owner: string | undefined): boolean {
  return owner?.startsWith(KEPT) ?? false;
}

/**
 * What the owner value of a lock begins with whose lease was detached, until it is adopted. So no late command for that
 * lease finds it, as with `KEPT`.
 */
export const DETACHED = 'detached@';

export function isDetached(owner: string | undefined): boolean {
  return owner?.startsWith(DETACHED) ?? false;
}

/** Whether no process has the lock, though its key is there: it is kept, or detached. */
export function isWithoutHolder(owner: string | undefined): boolean {
  return isKept(owner) || isDetached(owner);
}

/** The owner value that a lock had before it was kept, or its lease detached. */
export function holderOf(owner: string): string {
  const prefix = [KEPT, DETACHED].find((one) => owner.startsWith(one)) ?? '';
  return owner.slice(prefix.length);
}
