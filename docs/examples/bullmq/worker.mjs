import { DelayedError, Worker } from 'bullmq';

/**
 * A worker whose jobs of one order run one at a time, whichever worker has them. A job that finds its order locked is put
 * back for a moment, so that its worker can do another one.
 */
export function startWorker({ connection, registry, work, queue = 'orders' }) {
  const process = async (job, token) => {
    // The order that the job changes, and not the job: two jobs may change the same order.
    const lease = await registry.obtain(`order:${job.data.orderId}`).tryLock({ waitTime: 50 });
    if (lease === null) {
      await job.moveToDelayed(Date.now() + 100, token);
      throw new DelayedError();
    }
    try {
      const result = await work(job, lease.signal);
      lease.assertHeld(); // throws if the lock was lost on the way: the job fails, and is tried again
      return result;
    } finally {
      await lease.unlock();
    }
  };
  return new Worker(queue, process, { connection, concurrency: 4 });
}

/** In this order: no new jobs, then no new locks, then the connections. */
export async function stop({ worker, registry, connection }) {
  await worker.close();
  await registry.close();
  await connection.quit();
}
