import type { NodeCandidate } from './candidate';
import { nodeRedis } from './clients';

/** It has no renewal and no lock objects. */
export const simpleRedisMutex: NodeCandidate = {
  id: 'simple-redis-mutex',
  title: 'simple-redis-mutex',
  kind: 'notified',
  isVariant: true,
  packages: ['simple-redis-mutex', 'redis'],
  async open({ address, ttl }) {
    const { lock } = await import('simple-redis-mutex');
    const client = await nodeRedis(address);
    return { acquire: (key) => lock(client, key, { timeout: ttl }) };
  },
};
