import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { until } from './until';

setFlagsFromString('--expose_gc');
export const collectGarbage = runInNewContext('gc') as () => void;

/** Resolves when nothing refers to the object any more; rejects if something still does after 10 s. */
export async function untilCollected(reference: WeakRef<object>): Promise<void> {
  await until(() => {
    collectGarbage();
    return reference.deref() === undefined;
  });
}
