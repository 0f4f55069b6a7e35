import { nameIn, permitsIn, registryIn } from '../api/owner-name';
import { Scope } from './scope';
import { LEAST_TIME_TO_ANSWER, type QueuedLock, type Wait, type WaitedLock } from './wait';

/** What is needed of a wait to find whom it waits for. */
export type Waiting = Pick<Wait, 'isOver' | 'key' | 'scope'> & {
  readonly lock: { readonly names: { readonly lock: string } } | undefined;
};

interface Waits {
  /** Those of callers that are still acquiring. */
  readonly open: Iterable<Waiting>;
}

/** The waits of each registry of this process, until it is closed. A registry that is not closed is not kept. */
const registries = new Set<WeakRef<Waits>>();

/** From now on a circle may lead through these waits, until the function that is returned is called. */
export function mayWaitInCircle(waits: Waits): () => void {
  const reference = new WeakRef(waits);
  registries.add(reference);
  return () => void registries.delete(reference);
}

function* openWaits(): Iterable<Waiting> {
  for (const reference of registries) {
    const waits = reference.deref();
    if (waits === undefined) registries.delete(reference);
    else yield* waits.open;
  }
}

/**
 * The waits of this process that wait for each other, with this one as the first: each stands in a `run` that holds what
 * the one before it waits for. `undefined`: none is known. The shortest of several.
 */
export function circleOf(first: Waiting): readonly Waiting[] | undefined {
  const others = [...openWaits()].filter(({ isOver }) => !isOver);
  const seen = new Set<Waiting>();
  let ends: Waiting[][] = [[first]];
  while (ends.length > 0) {
    const longer: Waiting[][] = [];
    for (const path of ends) {
      const { lock } = path.at(-1) as Waiting;
      if (lock === undefined) continue;
      if (path.length > 1 && first.scope?.isInside(lock.names.lock)) return path;
      for (const next of others) {
        if (seen.has(next) || next === first || !next.scope?.isInside(lock.names.lock)) continue;
        seen.add(next);
        longer.push([...path, next]);
      }
    }
    ends = longer;
  }
  return undefined;
}

/** What is said of a circle: who holds what, and waits for what. */
export function describeCircle(circle: readonly Waiting[]): string {
  const holders = circle.map(({ key }, i) => `one holds "${circle.at(i - 1)?.key}" and waits for "${key}"`);
  return `Callers of this process wait for each other, which is a deadlock: ${holders.join(', ')}`;
}

/** How many locks are asked about at most: one that waits in a circle holds a few. */
const MOST_ASKED = 10;

/**
 * A circle with another process, where Redis knows it: `owner` holds the wanted lock, and its registry stands in the queue
 * of a lock that the caller holds `surely`, or `perhaps`. Which of its tasks stands there, Redis does not know. `timeout`
 * in ms.
 */
export async function circleWith(
  owner: string | undefined,
  wanted: QueuedLock,
  surely: readonly QueuedLock[],
  perhaps: readonly QueuedLock[],
  timeout: number,
): Promise<string | undefined> {
  const id = owner === undefined ? undefined : registryIn(owner);
  // Of a semaphore, another holder may give back what the caller waits for.
  if (owner === undefined || id === undefined || permitsIn(owner) < wanted.mostPermits) return undefined;
  const held = [...new Set([...surely, ...perhaps])].slice(0, MOST_ASKED);
  const awaited = await Promise.all(held.map((lock) => lock.isAwaitedBy(id, timeout)));
  const first = held.find((_, i) => awaited[i]);
  if (first === undefined) return undefined;
  const { key } = first;
  const name = nameIn(owner) ?? 'that client';
  const circle = `${name} holds "${wanted.key}" and waits for "${key}"`;
  if (!surely.includes(first))
    return `This process holds "${key}", and ${circle}: by the same tasks, this is a deadlock`;
  return `The caller is inside a \`run\` that holds "${key}", and ${circle}: this is a deadlock, unless two tasks of ${name} do that`;
}

/**
 * Why a lock was not free within `waitTime`, as far as that is known: its caller has waited for itself, or in a circle.
 * Redis is asked only by a caller that has waited and holds locks, and has a moment to answer. `answers`: it has answered
 * all that it was asked about the lock.
 */
export async function hintAfter(
  lock: Omit<WaitedLock, 'inspect'>,
  waitTime: number,
  answers: boolean,
): Promise<string | undefined> {
  const scope = Scope.current();
  if (scope?.isInside(lock.names.lock)) return 'The caller is inside a `run` that holds it: it has waited for itself';
  const circle = circleOf({ key: lock.key, lock, scope, isOver: true });
  if (circle !== undefined) return describeCircle(circle);
  if (waitTime === 0) return undefined;
  const { heldFor = 0 } = lock;
  if (heldFor >= waitTime) {
    const why = 'if the caller is the holder, it has waited for itself, since only `run` is re-entrant';
    return `This process has held it all the time: ${why}`;
  }
  if (scope === undefined || !answers) return undefined;
  return circleWith(lock.lastHolder?.owner, lock, scope.heldAlone, [], LEAST_TIME_TO_ANSWER);
}
