/** What a caller of a shared lock asks for: a permit, to read, or to write. */
export const SHARED_KINDS = ['semaphore', 'read', 'write'] as const;

export type SharedKind = (typeof SHARED_KINDS)[number];

/** What a lock of this kind is called in messages. */
export function describeKind(kind: SharedKind): string {
  return kind === 'semaphore' ? 'a semaphore' : 'a read/write lock';
}
