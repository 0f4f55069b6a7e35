/**
 * Lock libraries of other languages, and other ones of Node, that write one string with an expiry, as `spin`, `pub-sub` and
 * `fair` do. A language is a folder beside this file, with:
 *
 * - `language.ts`, which exports a `Language`, and stands in `languages.ts`,
 * - `NAME.test.ts` of one line: `testLanguage(NAME)`,
 * - a program that executes lock commands in the line protocol of `java/.../Peer.java`. Its last argument is the port of
 *   Redis. A line is "id kind caller ttl verb name argument...", with the id of a library as its kind; a ttl of 0 is a key
 *   without expiry, and the name is what the library calls the lock.
 *
 * Its verbs: `lock`, which waits without limit; `tryLock [ms]`, true or false; `unlock`; `about`, what the library says of a
 * lock that somebody else holds; and `compete callers work ms witness`: as compete.ts, with `witness:inside` as the counter,
 * which answers "turns,longestWait,violations".
 */

/** A name in which `NAME` stands for what a test calls its lock. */
export type NameTemplate = string;

export interface Library {
  /** The kind in the commands for the peer. */
  readonly id: string;
  /** In the titles of tests and on the page. */
  readonly title: string;
  /** The one that is pinned. */
  readonly version: string;
  /** What a program of this library calls the lock, and what names it here. */
  readonly there: NameTemplate;
  readonly registryKey: string;
  readonly key: NameTemplate;
  /** The value in Redis, one character for each byte, and what the page says of it. */
  readonly token: RegExp;
  readonly tokenText: string;
  /** For the page: how long a lease is when a program gives none, and how a waiter learns of a release. */
  readonly expiry: string;
  readonly waits: string;
  /** What it says of a lock that a Node process holds, in the words of its `about`. */
  readonly about: string;
  /** What its release of a lock does that it has lost, and another one has. Default: `refused`. */
  readonly lateRelease?: 'refused' | 'silent' | 'deletes';
  /** Whether its token is no text: each client of ours is tried beside it. */
  readonly isBinary?: true;
  /** Of all turns under load, that each side has at least, where it is not a tenth as with the others. */
  readonly leastShare?: number;
  /** A way to use another one of the list: it has no row on the page. */
  readonly isVariant?: true;
  /** Whether it can hold a key without expiry: the peer is given a ttl of 0. */
  readonly withoutExpiry?: true;
}

export interface Language {
  /** Of its folder. */
  readonly name: string;
  /** As people write it. */
  readonly title: string;
  /** What it needs and this machine doesn't have. */
  missing(): string | undefined;
  /** With CI set, the part fails if something is missing; otherwise it is left out. */
  readonly required?: true;
  /** Installs or builds into `cacheOf(name)`, once: what is there in the pinned version stays. */
  install(): void;
  /** The program and its arguments, to which the port of Redis is added. It is the process itself that is killed. */
  readonly peer: readonly [command: string, ...args: string[]];
  readonly libraries: readonly Library[];
}
