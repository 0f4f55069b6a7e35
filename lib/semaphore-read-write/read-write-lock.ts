import type { DistributedLock } from '../distributed-lock';

/** The two locks of a read/write lock: many readers, or one writer. */
export interface ReadWriteLock {
  readonly key: string;
  /** Readers share it. Inside the caller's own write scope it enters on the write lease, without a command. */
  readonly read: DistributedLock;
  /** One writer, and no readers. Inside the caller's own read scope it rejects: it would wait for itself. */
  readonly write: DistributedLock;
}
