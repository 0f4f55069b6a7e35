import { setTimeout as sleep } from 'node:timers/promises';
import { LockReleaseError, type RedisLockRegistry } from '../../../lib';
import type { CommandTo } from '../messages';
import type { SoakType } from '../settings';
import { lockFor, progressAccess } from './locks';
import type { PendingSteps } from './pending-steps';

/** Takes each lock once, all at the same time: in calm nobody may have to wait for long. Says what failed. */
export async function progress(
  registry: RedisLockRegistry,
  type: SoakType,
  steps: PendingSteps,
  { keys, within }: CommandTo<'progress'>,
): Promise<string[]> {
  const attempts = keys.map(async (key) => {
    // The bound is on the clock of this process, which a busy machine holds up, so `waitTime` leaves room for that.
    const taking = lockFor(registry, key, progressAccess(type, key)).lock({ waitTime: 3 * within });
    const lease = await steps.bounded(`lock of "${key}" in calm`, within, taking);
    await lease.unlock().catch(ignoreUnconfirmed);
    return [];
  });
  const results = await Promise.allSettled(attempts);
  return results.flatMap((result, i) => (result.status === 'rejected' ? [`"${keys[i]}": ${result.reason}`] : []));
}

/** Callers that want one lock all the time. Resolves to the longest time in which none of them got it, in ms. */
export async function busy(
  registry: RedisLockRegistry,
  type: SoakType,
  { key, ms }: CommandTo<'busy'>,
): Promise<number> {
  const endsAt = performance.now() + ms;
  let [last, longest] = [performance.now(), 0];
  const work = async () => {
    while (performance.now() < endsAt) {
      const lease = await lockFor(registry, key, progressAccess(type, key)).lock();
      longest = Math.max(longest, performance.now() - last);
      last = performance.now();
      await sleep(5);
      await lease.unlock().catch(ignoreUnconfirmed);
    }
  };
  await Promise.all([work(), work(), work()]);
  return longest;
}

/** A busy machine can hold the answer up for longer than a command may take. The soak then looks for what is left. */
function ignoreUnconfirmed(error: unknown): void {
  if (!(error instanceof LockReleaseError)) throw error;
}
