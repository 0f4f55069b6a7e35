import { Cron } from 'croner';
import cron from 'node-cron';
import { RegistryClosedError } from 'redis-lock-registry';
import { runCoordinator } from 'redis-lock-registry/node-cron';

/** ms; more than the difference between the clocks of the machines, less than the interval. */
const MIN_HOLD = 500;

/** croner: every machine starts the job, and one of them runs it. */
export function scheduleWithCroner(registry, pattern, name, job) {
  return new Cron(pattern, { catch: (error) => console.error(error) }, async () => {
    try {
      await registry.tryRun(`job:${name}`, ({ signal }) => job(signal), { minHold: MIN_HOLD });
    } catch (error) {
      // The process is shutting down: another machine runs the job.
      if (!(error instanceof RegistryClosedError)) throw error;
    }
  });
}

/** node-cron: a coordinator decides which machine runs a task that is `distributed`. */
export function scheduleWithNodeCron(registry, pattern, name, job) {
  return cron.schedule(pattern, job, { name, distributed: true, runCoordinator: runCoordinator(registry) });
}
