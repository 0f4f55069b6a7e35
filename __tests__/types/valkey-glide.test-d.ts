/**
 * Compiled by `npm run typecheck`, never run: which clients `fromGlide` takes without casts.
 */

import type { GlideClient, GlideClusterClient } from '@valkey/valkey-glide';
import { RedisLockRegistry } from '../../lib';
import { fromGlide } from '../../lib/valkey-glide';

const options = { registryKey: 'orders', lockType: 'fair' } as const;

export function accepted(client: GlideClient, cluster: GlideClusterClient) {
  return [
    new RedisLockRegistry(fromGlide(client), options),
    new RedisLockRegistry(fromGlide(cluster), options),
    // As the subscriber of another client.
    new RedisLockRegistry(fromGlide(client), { ...options, subscriber: fromGlide(client) }),
  ];
}

export function refused(client: GlideClient) {
  // @ts-expect-error: not without the adapter
  new RedisLockRegistry(client, options);
  // @ts-expect-error: nothing of valkey-glide
  fromGlide({ eval: async () => 1 });
}
