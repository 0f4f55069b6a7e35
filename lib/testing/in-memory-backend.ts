import { Availability } from '../core/availability';
import type { Inspected, LockBackend, LockInspector, ScriptRunner } from '../core/backend';
import {
  type Grant,
  type LockProtocol,
  NOT_GRANTED,
  type NotGranted,
  type Ownership,
  type Permits,
} from '../core/protocol';
import type { Connection } from '../redis/connection';
import { globPattern, type LockNames } from '../redis/names';
import type { InMemoryLocks } from './in-memory-locks';
import type { StoredKind } from './stored-lock';

/** One registry, as `InMemoryLocks` knows it. */
export interface Sender {
  /** From now on nothing waits for an answer: it is there at once, or the request fails. */
  isCutOff: boolean;
}

type Send = <T>(execute: () => T, timeout: number) => Promise<T>;

/** Memory has no Lua. */
const heldScripts: ScriptRunner = {
  assertPlaced() {
    throw new TypeError('Locks in memory run no scripts: lease.eval needs a lock in Redis');
  },
  run: () => Promise.reject(new TypeError('Locks in memory run no scripts')),
};

/** Nothing is lost on the way to locks in memory, and nothing comes in another order. */
const CONNECTION: Connection = {
  connectionEpoch: 0,
  disruptions: 0,
  isClosed: false,
  lastError: undefined,
  mayBeOutdated: () => false,
  unansweredSince: () => undefined,
  inOrder: (ask) => ask(),
  slotOf: () => undefined,
};

/** The locks of one registry in memory. `cutOff`: makes its sender cut off. */
export function inMemoryBackend(locks: InMemoryLocks, isFencing: boolean): LockBackend & { cutOff(): void } {
  const sender: Sender = { isCutOff: false };
  const send: Send = (execute, timeout) => locks.send(execute, timeout, sender);
  const open = (kind: StoredKind, names: LockNames) => inMemoryProtocol(names.lock, kind, locks, send, isFencing);
  const state = (names: LockNames): Inspected => {
    const found = locks.find(names.lock).state;
    return isFencing ? found : { ...found, fencingToken: undefined };
  };
  const inspector: LockInspector = {
    inspect: (names, timeout) => send(() => state(names), timeout),
    forceUnlock(names, timeout) {
      return send(() => {
        const before = state(names);
        locks.find(names.lock).forceUnlock();
        return before;
      }, timeout);
    },
  };
  return {
    connection: CONNECTION,
    inspector,
    heldScripts,
    shared: { inspector, open, heldScripts: () => heldScripts },
    open: (names) => open('lock', names),
    async *keys(prefix, match, _count, timeout) {
      const pattern = globPattern(match);
      const names = await send(() => locks.names, timeout);
      yield names.filter((name) => name.startsWith(prefix) && pattern.test(name.slice(prefix.length)));
    },
    /** The in-memory error already names both uses. */
    explainWrongType: (error) => Promise.resolve(error),
    onReconnect: (listener) => locks.onReconnect(listener),
    close: () => Promise.resolve(),
    cutOff() {
      sender.isCutOff = true;
      locks.cutOff(sender);
    },
  };
}

/** One lock in memory, as its callers see it. They queue there, each for itself: FIFO over all registries. */
function inMemoryProtocol(
  name: string,
  kind: StoredKind,
  locks: InMemoryLocks,
  send: Send,
  isFencing: boolean,
): LockProtocol {
  /** Those of this registry that wait, each with what makes it attempt again. */
  const waiting = new Set<(result: NotGranted) => void>();
  const lock = () => locks.find(name);
  const hasToken = isFencing && (kind === 'lock' || kind === 'write');
  const answered = <T extends Grant | NotGranted>(answer: T): T =>
    answer.granted && !hasToken ? { ...answer, fencingToken: undefined } : answer;
  const protocol: LockProtocol & { permits: Permits | undefined; wake(): void } = {
    availability: new Availability(),
    permits: undefined,
    /** All that is remembered is in `InMemoryLocks`. */
    isActive: false,
    /** Readers enter together with those of their process, as in Redis. */
    queuesItself: kind !== 'read',
    /** The queue gives every caller its turn. */
    standBack: () => undefined,

    async attempt(hold, timeout) {
      const { ticket, ttl, waits, permits: takes } = hold;
      hold.isEnqueued = waits;
      const answer = await send(() => {
        const permits = protocol.permits && { count: protocol.permits.count, at: protocol.permits.givenAt };
        return lock().acquire({ ticket, kind, ttl, permits, takes }, waits);
      }, timeout);
      return answered(answer);
    },

    async wait({ ticket }, _refusal, wait) {
      if (protocol.permits !== undefined) protocol.permits.waiting = protocol;
      let answer: Grant | NotGranted | undefined;
      try {
        answer = await wait.suspend<Grant | NotGranted>(wait.remaining, (resume) => {
          waiting.add(resume);
          const leave = lock().await(ticket, resume);
          return () => {
            waiting.delete(resume);
            leave();
          };
        });
      } finally {
        // Its caller has given up. In a silence the orphan is followed up.
        if (answer === undefined && !locks.isSilent) lock().release(ticket);
      }
      return answered(answer ?? NOT_GRANTED);
    },

    /** A caller that waits tells its number of permits. It keeps its position. */
    wake() {
      const [first] = waiting;
      first?.(NOT_GRANTED);
    },

    renew(owner, ttl, mode, timeout, settle) {
      const execute = (): Ownership => lock().renew(owner, ttl, mode);
      // At once: timers that a test advances in one go fire without the promise jobs between them.
      if (!locks.isSilent) settle(execute());
      else send(execute, timeout).then(settle, (cause: unknown) => settle({ state: 'unknown', cause }));
    },

    release: (owner, timeout, keep) =>
      send(() => (keep === undefined ? lock().release(owner) : lock().keep(owner, keep)), timeout),
    /** The lock is for the first in the queue. Where nobody waits, readers enter beside others. */
    mayPassOn: () => kind === 'read' && !locks.isSilent && !lock().isAwaited,
    orphanLife: ({ askedTtl }) => askedTtl,
  };
  return protocol;
}
