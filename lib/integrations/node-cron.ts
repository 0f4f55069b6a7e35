import type { Lease } from '../api/distributed-lock';
import { RegistryClosedError } from '../api/errors';
import { assertRegistry } from '../internal/validation';
import type { LockRegistry } from '../registry/lock-registry';

/** `RunCoordinator` of node-cron, by structure. This module does not import the package. */
export interface RunCoordinator {
  shouldRun(key: string, ttlMs: number): Promise<boolean>;
  onComplete(key: string): Promise<void>;
}

/**
 * Decides which of several machines runs a task of node-cron that is `distributed`. The lock of a run is named after the
 * task and the time of the run. It stays taken for the task's `distributedLease` (30 s by default), also after a shorter
 * run: a machine whose clock is behind comes within that time and skips. A longer run is renewed. Where Redis cannot be
 * asked, node-cron skips the run, with a message in its log; it also logs after a run that its lock was lost meanwhile.
 * Where the registry is closed, it skips the run without a message.
 * @throws TypeError when it is no registry.
 * @example
 * import cron from 'node-cron';
 *
 * cron.setRunCoordinator(runCoordinator(registry));
 * cron.schedule('0 3 * * *', () => backUp(), { name: 'backup', distributed: true });
 */
export function runCoordinator(registry: LockRegistry): RunCoordinator {
  assertRegistry(registry, 'obtain');
  const leases = new Map<string, Lease>();
  return {
    async shouldRun(key, ttlMs) {
      const trying = registry.obtain(key).tryLock({ ttl: ttlMs, renew: true, minHold: ttlMs });
      const lease = await trying.catch((error: unknown) => {
        // The application shuts down, and another machine may run it.
        if (error instanceof RegistryClosedError) return null;
        throw error;
      });
      if (lease !== null) leases.set(key, lease);
      return lease !== null;
    },
    async onComplete(key) {
      const lease = leases.get(key);
      leases.delete(key);
      await lease?.unlock();
    },
  };
}
