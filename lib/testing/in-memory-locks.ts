import { setMaxListeners } from 'node:events';
import {
  DEFAULT_TYPE,
  describeFormat,
  describeKind,
  entersTogether,
  isExclusive,
  listed,
  SHARED_KINDS,
  type StoredKind,
  TRAVELLING_TYPES,
  traitsOf,
} from '../api/lock-types';
import type { RegistrySettings } from '../api/options';
import { holderOf, nameIn, registryIn } from '../api/owner-name';
import { Availability } from '../core/availability';
import type { Inspected, LockBackend, LockInspector, ScriptRunner } from '../core/backend';
import { ttlFor } from '../core/hold';
import { messageTaken } from '../core/inbox';
import { LoopRound } from '../core/loop-round';
import type { Grant, LockProtocol, NotGranted, NotHeld, Ownership } from '../core/protocol';
import { NOT_GRANTED } from '../core/protocol';
import { clock } from '../internal/clock';
import { WakeTimer } from '../internal/timers';
import { checkedOptions, inOneLine, nonEmptyString, string, ttl } from '../internal/validation';
import type { Permits } from '../kinds/shared/permits';
import { STORE_RESULT } from '../once/once';
import type { Connection } from '../redis/connection';
import { answered, ClientClosedError } from '../redis/failure';
import { globPattern, LockNames } from '../redis/names';
import { WARNED_AFTER } from '../redis/silence-times';
import { installFakeableClock } from './fakeable-clock';
import { InMemoryResults } from './in-memory-results';
import { StoredLock, type Use } from './stored-lock';

/** ms */
const STOLEN_FOR = 60_000;

/** Which lock of `InMemoryLocks` is meant. */
export interface WhichLock {
  /**
   * The `registryKey` of the lock, where these locks have registries with several.
   * @default that of the registries
   */
  registryKey?: string | undefined;
}

/** Options of `InMemoryLocks.steal`. */
export interface StealOptions extends WhichLock {
  /**
   * ms for which somebody else has the lock.
   * @default 60_000
   */
  ttl?: number | undefined;
}

/** Who holds a lock in memory. */
export interface InMemoryHolder {
  /** The value that says who, as `LockState.owner`. */
  readonly owner: string;
  /** The option `name` of its registry; `undefined` after `steal`. */
  readonly name: string | undefined;
  /** ms until the lock expires unless it is renewed. */
  readonly remaining: number;
  readonly fencingToken: number;
}

/**
 * Locks in memory, in place of a Redis. Registries that are made with one of these exclude each other, as processes do
 * that share a Redis. Its methods simulate expiry, theft and a silent Redis.
 * @example
 * const locks = new InMemoryLocks();
 * const [ours, theirs] = [new InMemoryLockRegistry({ locks }), new InMemoryLockRegistry({ locks })];
 */
export class InMemoryLocks {
  readonly #locks = new Map<string, StoredLock>();
  readonly #registryKeys = new Set<string>();
  readonly #reconnected = new Set<() => void>();
  readonly #silent = new Set<() => void>();
  /** Runs while a request has not been answered. */
  readonly #silenceTimer = new WakeTimer(() => {
    const since = this.silentSince ?? Number.POSITIVE_INFINITY;
    // A timer of Node may fire some ms early. As the warning counts it: a sum of fractions may be rounded otherwise.
    if (clock.now() - since < WARNED_AFTER) this.#silenceTimer.by(since + WARNED_AFTER);
    else for (const listener of [...this.#silent]) listener();
  }, false);
  /** Executes what was requested in the silence, in that order. */
  readonly #unanswered: (() => void)[] = [];
  /** Beyond this number, locks that nobody holds or waits for are removed. */
  #sweepAt = 16;
  /** @internal */
  isSilent = false;
  /** @internal */
  readonly results = new InMemoryResults();
  /** @internal */
  readonly loopRound = new LoopRound();
  /** @internal The inboxes of registries, by an owner value of theirs. */
  readonly inboxes = new Map<string, (message: string) => void>();
  /** @internal When the first request was sent that is not answered, on the monotonic clock. */
  silentSince: number | undefined;
  #lastToken = 0;

  constructor() {
    installFakeableClock();
  }

  /**
   * The lock expires now, for all who share it: the next waiter gets it. Its holder learns that as it does with Redis:
   * when it renews it next, or when it unlocks.
   * @throws Error when nobody holds it.
   */
  expire(key: string, which: WhichLock = {}): void {
    const lock = this.#named(key, which);
    if (lock.state.owner === undefined) throw new Error(inOneLine(`Lock "${key}" cannot expire: nobody holds it`));
    lock.free();
  }

  /**
   * Somebody else, who is none of the registries, has the lock alone from now on. Its holder learns that as with
   * `expire`.
   */
  steal(key: string, options: StealOptions = {}): void {
    const { ttl: stolenFor = STOLEN_FOR, ...which } = checkedOptions<StealOptions>(
      { registryKey: string, ttl },
      options,
    );
    this.#named(key, which).give('somebody else', stolenFor);
  }

  /** Who holds the lock; `undefined`: nobody. */
  holder(key: string, which: WhichLock = {}): InMemoryHolder | undefined {
    const { owner, remaining, fencingToken = 0 } = this.#named(key, which).state;
    return owner === undefined ? undefined : { owner, name: nameIn(owner), remaining, fencingToken };
  }

  /** From now on no request is answered, as by a Redis that was frozen or cannot be reached. Locks go on expiring. */
  goSilent(): void {
    this.isSilent = true;
    for (const lock of this.#locks.values()) lock.wakeWaiters();
  }

  /**
   * Requests are answered again. What was requested in the silence is executed first, also if its caller has given up.
   */
  comeBack(): void {
    this.isSilent = false;
    this.silentSince = undefined;
    this.#silenceTimer.cancel();
    for (const lock of this.#locks.values()) lock.expireAndGrant();
    for (const execute of this.#unanswered.splice(0)) execute();
    for (const listener of [...this.#reconnected]) listener();
  }

  /** @internal */
  nextToken(): number {
    return ++this.#lastToken;
  }

  /** @internal A registry with this key has these locks. */
  use(registryKey: string): void {
    this.#registryKeys.add(registryKey);
  }

  /** @internal */
  onReconnect(listener: () => void): () => void {
    this.#reconnected.add(listener);
    return () => this.#reconnected.delete(listener);
  }

  /** @internal */
  onSilence(listener: () => void): () => void {
    this.#silent.add(listener);
    return () => {
      if (this.#silent.delete(listener) && this.#silent.size === 0) this.#silenceTimer.cancel();
    };
  }

  /** @internal Whether the registry of this owner value hears it: after what answers the sender, as from another connection. */
  tell(owner: string, message: string): boolean {
    const receive = this.inboxes.get(`${registryIn(holderOf(owner))}:0`);
    void clock.immediate().then(() => receive?.(message));
    return receive !== undefined;
  }

  /** @internal The lock of this name. */
  find(name: string): StoredLock {
    let lock = this.#locks.get(name);
    if (lock === undefined) {
      if (this.#locks.size >= this.#sweepAt) this.#sweep();
      lock = new StoredLock(this);
      this.#locks.set(name, lock);
    }
    return lock;
  }

  /** @internal The names of the locks that are held. */
  get names(): string[] {
    this.#sweep();
    return [...this.#locks.keys()];
  }

  /**
   * @internal Executes a request, and resolves to its answer. In a silence it is executed when that is over, and
   * rejects with `CommandTimeoutError` after `timeout` ms, or at once by the signal `cutOff`. It is executed all the same.
   */
  send<T>(execute: () => T, timeout: number, cutOff: AbortSignal): Promise<T> {
    const executed = () => new Promise<T>((resolve) => resolve(execute()));
    if (!this.isSilent) return executed();
    this.silentSince ??= clock.now();
    if (this.#silent.size > 0) this.#silenceTimer.by(clock.now() + WARNED_AFTER);
    const reply = new Promise<T>((resolve, reject) => {
      const leave = (): void => reject(cutOff.reason);
      this.#unanswered.push(() => {
        cutOff.removeEventListener('abort', leave);
        void executed().then(resolve, reject);
      });
      cutOff.addEventListener('abort', leave);
      if (cutOff.aborted) reject(cutOff.reason);
    });
    return answered(reply, timeout);
  }

  #sweep(): void {
    for (const [name, lock] of this.#locks) if (lock.isIdle) this.#locks.delete(name);
    this.#sweepAt = 2 * this.#locks.size + 16;
  }

  #named(key: string, which: WhichLock): StoredLock {
    nonEmptyString('key', key);
    const given = checkedOptions<WhichLock>({ registryKey: string }, which).registryKey;
    const keys = given === undefined ? [...this.#registryKeys] : [given];
    const [registryKey] = keys;
    if (registryKey === undefined) throw new Error('No registry was made with these locks yet');
    if (keys.length > 1) {
      const message = `These locks have registries with several registryKeys (${keys.map((one) => one || "''").join(', ')}): say which is meant`;
      throw new TypeError(message);
    }
    return this.find(LockNames.checked(registryKey, key).lock);
  }
}

type Send = <T>(execute: () => T, timeout: number) => Promise<T>;

/** Memory has no Lua. What the script of `once` does is done in its place. */
function leaseScriptsOf(locks: InMemoryLocks, send: Send): ScriptRunner {
  return {
    assertPlaced(_names, { script }) {
      if (script !== STORE_RESULT) {
        throw new TypeError('Locks in memory run no scripts: lease.eval needs a lock in Redis');
      }
    },
    run(names, owner, { keys: [name = ''], args: [text = '', keepFor, mark = ''] }, timeout) {
      return send(() => {
        const holder = locks.find(names.lock).state.owner;
        if (holder !== owner) return { held: false, state: holder === undefined ? 'expired' : 'stolen' };
        return { held: true, reply: locks.results.store(name, text, Number(keepFor), mark) ? 1 : 0 };
      }, timeout);
    },
  };
}

/** Nothing is lost on the way to locks in memory, and nothing comes in another order. */
const connectionTo = (locks: InMemoryLocks): Connection & { isClosed: boolean } => ({
  connectionEpoch: 0,
  disruptions: 0,
  isClosed: false,
  isClientClosed: false,
  isDisconnected: () => false,
  connectsUnasked: true,
  lastError: undefined,
  mayBeOutdated: () => false,
  unansweredSince: () => locks.silentSince,
  rejectionOf: () => undefined,
  allOrNone: (ask) => ask(),
  areTogether: () => false,
  slotOf: () => undefined,
});

/**
 * @internal The locks of one registry in memory. They refuse the names that Redis refuses for locks of the type that was
 * given: by default that of its own default.
 */
export function inMemoryBackend(
  locks: InMemoryLocks,
  { fencing: isFencing, lockType }: RegistrySettings,
  givenType = DEFAULT_TYPE,
): LockBackend {
  const { format, companions } = traitsOf(givenType);
  const connection = connectionTo(locks);
  const closed = new AbortController();
  setMaxListeners(0, closed.signal);
  const cutOff = () => closed.abort(new ClientClosedError('The registry was closed before Redis answered'));
  const send: Send = (execute, timeout) => locks.send(execute, timeout, closed.signal);
  const useOf = (kind: StoredKind): Use => {
    const isShared = kind !== 'lock';
    const is = isShared ? describeKind(kind) : describeFormat(format);
    return { is, as: isShared ? is : `a lock of type ${lockType}`, isShared };
  };
  const open = (kind: StoredKind, names: LockNames) => {
    const use = useOf(kind);
    // Throws for a name whose companion would be in another hash slot.
    if (use.isShared || companions.some((one) => one !== 'fence' || isFencing)) names.companion('queue');
    const travels = !use.isShared && TRAVELLING_TYPES.includes(lockType);
    return inMemoryProtocol(names.lock, kind, use, locks, send, isFencing, travels);
  };
  const state = (names: LockNames, seenAs: Use): Inspected => {
    const lock = locks.find(names.lock);
    lock.assertSeenAs(seenAs);
    const { kind = 'lock', fencingToken, holders, ...found } = lock.state;
    const token = isFencing && isExclusive(kind) ? fencingToken : undefined;
    return {
      ...found,
      fencingToken: token,
      ...((seenAs.isShared || kind !== 'lock') && {
        holders,
        owners: lock.owners.map((one) => `${kind}:${one}`).join(' '),
      }),
    };
  };
  const inspectorOf = (seenAs: Use): LockInspector => ({
    inspect: (names, timeout) => send(() => state(names, seenAs), timeout),
    forceUnlock(names, timeout, by) {
      return send(() => {
        const before = state(names, seenAs);
        const lock = locks.find(names.lock);
        const tell = (owner: string) => locks.tell(owner, messageTaken(owner, by, names));
        const heard = lock.owners.map(tell).filter(Boolean).length;
        lock.free();
        return before.owner === undefined ? before : { ...before, heard };
      }, timeout);
    },
    isAwaitedBy: (id, names, timeout) => send(() => locks.find(names.lock).isAwaitedBy(id), timeout),
  });
  const leaseScripts = leaseScriptsOf(locks, send);
  const { results } = locks;
  let closeInbox = (): void => undefined;
  const anyShared = { ...useOf('semaphore'), as: listed([...new Set(SHARED_KINDS.map(describeKind))]) };
  return {
    connection,
    inspector: inspectorOf(useOf('lock')),
    leaseScripts,
    results: {
      read: (name, timeout) => send(() => results.read(name), timeout),
      begin: ({ result }, timeout) => send(() => results.begin(result), timeout),
      forget: (keys, mark, timeout) =>
        send(() => results.forget(keys, mark, locks.find(keys.lock).state.owner !== undefined), timeout),
      watch: (name) => results.watch(name),
    },
    shared: { inspector: inspectorOf(anyShared), open, leaseScripts: () => leaseScripts },
    inboxes: {
      countsAll: true,
      async open(owner, receive) {
        locks.inboxes.set(owner, receive);
        closeInbox = () => void locks.inboxes.delete(owner);
      },
      send: (owner, message, _lock, timeout) => send(() => Number(locks.tell(owner, message)), timeout),
    },
    open: (names) => open('lock', names),
    async *keys(prefix, match, _count, timeout) {
      const pattern = globPattern(match);
      const names = await send(() => locks.names, timeout);
      yield names.filter((name) => name.startsWith(prefix) && pattern.test(name.slice(prefix.length)));
    },
    /** The in-memory error already names both uses. */
    explainWrongType: (error) => Promise.resolve(error),
    onReconnect: (listener) => locks.onReconnect(listener),
    onSilence: (listener) => locks.onSilence(listener),
    async close() {
      connection.isClosed = true;
      closeInbox();
      cutOff();
    },
    /** `close` needs no timer then, which a test may have faked. */
    cutOff,
  };
}

/** One lock in memory, as its callers see it. They queue there, each for itself: FIFO over all registries. */
function inMemoryProtocol(
  name: string,
  kind: StoredKind,
  use: Use,
  locks: InMemoryLocks,
  send: Send,
  isFencing: boolean,
  travels: boolean,
): LockProtocol {
  /** Callers of this registry that wait: what makes each attempt again. */
  const waiting = new Set<(result: NotGranted) => void>();
  const lock = () => locks.find(name);
  const hasToken = isFencing && isExclusive(kind);
  const isTogether = entersTogether(kind);
  /** The store mints a token for each grant. */
  const asAsked = <T extends Grant | NotGranted>(answer: T): T =>
    answer.granted && !hasToken ? { ...answer, fencingToken: undefined } : answer;
  const adopted = (from: string, owner: string, ttl: number): Grant | NotHeld => {
    const answer = lock().adopt(from, owner, ttl);
    return typeof answer === 'string' ? answer : asAsked(answer);
  };
  const protocol: LockProtocol & { permits: Permits | undefined; wake(): void } = {
    hasQueue: true,
    availability: new Availability(),
    get hasLearnt() {
      return !protocol.availability.isBlank;
    },
    callersLeft() {
      protocol.availability.failure = undefined;
    },
    permits: undefined,
    get hasNews() {
      return protocol.permits?.isNews === true;
    },
    /** Readers enter together with those of their process, as in Redis. */
    queuesItself: !isTogether,
    ttlFor: (request) => (isTogether ? ttlFor(request) : request.ttl),
    /** The queue gives every caller its turn. */
    standBack: () => undefined,

    async attempt(hold, timeout) {
      const { ticket, ttl, waits, since, permits: takes } = hold;
      // Who waits for nothing but these locks would let no timer fire. Redis answers over a socket.
      if (locks.loopRound.isDue(clock.now())) await clock.immediate();
      const answer = await send(() => {
        const permits = protocol.permits && { count: protocol.permits.count, at: protocol.permits.givenAt };
        const said = lock().acquire({ ticket, kind, use, ttl, permits, takes, since }, waits);
        if (permits !== undefined) protocol.permits?.reported(permits.at, lock().permits);
        return said;
      }, timeout);
      return asAsked(answer);
    },

    async wait(hold, _refusal, wait) {
      const { ticket } = hold;
      if (protocol.permits !== undefined) protocol.permits.waiting = protocol;
      let answer: Grant | NotGranted | undefined;
      try {
        answer = await wait.suspend<Grant | NotGranted>(wait.remaining, (resume) => {
          waiting.add(resume);
          lock().await(ticket, resume);
          return () => void waiting.delete(resume);
        });
      } finally {
        // Its caller has given up. In a silence the orphan is followed up.
        if (answer === undefined && !locks.isSilent) lock().release(ticket);
      }
      // The caller has the lock since now, and not since its attempt: readers of its process may enter with it.
      if (answer?.granted) hold.sentAt = Math.floor(clock.now());
      return asAsked(answer ?? NOT_GRANTED);
    },

    /** A caller that waits tells its number of permits. It keeps its position. */
    wake() {
      const [first] = waiting;
      first?.(NOT_GRANTED);
    },

    renew(owner, ttl, timeout, settle) {
      const execute = (): Ownership => lock().renew(owner, ttl);
      // At once: timers that a test advances in one go fire without the promise jobs between them.
      if (!locks.isSilent) settle(execute());
      else send(execute, timeout).then(settle, (cause: unknown) => settle({ state: 'unknown', cause }));
    },

    release(owner, timeout, keep) {
      // A silence does not make a `minHold` longer.
      const until = keep && clock.now() + keep.left;
      return send(() => (until === undefined ? lock().release(owner) : lock().keep(owner, until)), timeout);
    },
    travel: travels
      ? {
          detach: (owner, to, ttl, timeout) => send(() => lock().detach(owner, to, ttl), timeout),
          adopt: (from, { owner, ttl }, timeout) => send(() => adopted(from, owner, ttl), timeout),
          replace(from, { owner, ttl }, message, least, timeout) {
            return send(() => {
              if (lock().owners.includes(from) && Number(locks.tell(from, message)) < least) return 'unheard';
              return adopted(from, owner, ttl);
            }, timeout);
          },
        }
      : undefined,
    /** The lock is for the first in the queue. Where nobody waits, readers enter beside others. */
    mayPassOn: () => isTogether && !locks.isSilent && !lock().isAwaited,
    orphanLife: ({ longestTtl }) => longestTtl,
  };
  return protocol;
}
