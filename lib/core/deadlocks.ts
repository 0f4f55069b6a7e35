import { Scope } from './scope';
import type { Wait, WaitedLock } from './wait';

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

/** Why a lock was not free within `waitTime`, as far as that is known: its caller has waited for itself, or in a circle. */
export function hintAfter(lock: Pick<WaitedLock, 'heldFor' | 'names'> & { readonly key: string }, waitTime: number) {
  const scope = Scope.current();
  if (scope?.isInside(lock.names.lock)) return 'The caller is inside a `run` that holds it: it has waited for itself';
  const circle = circleOf({ key: lock.key, lock, scope, isOver: true });
  if (circle !== undefined) return describeCircle(circle);
  const { heldFor = 0 } = lock;
  if (waitTime === 0 || heldFor < waitTime) return undefined;
  const why = 'if the caller is the holder, it has waited for itself, since only `run` is re-entrant';
  return `This process has held it all the time: ${why}`;
}
