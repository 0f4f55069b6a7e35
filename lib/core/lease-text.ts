import { inspect } from 'node:util';
import type { Lease } from '../api/distributed-lock';

/** What `console.log(lease)` prints: no internals. */
export function leaseText(type: string, { key, remaining }: Lease, more = ''): string {
  return `${type} { key: ${inspect(key)}, remaining: ${Math.round(remaining)}${more} }`;
}
