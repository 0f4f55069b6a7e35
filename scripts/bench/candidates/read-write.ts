import type { NodeCandidate } from './candidate';
import { ourRegistry } from './our-registry';

export const ourReadWrite: NodeCandidate = {
  id: 'read-write',
  title: 'ours: readWrite',
  kind: 'readWrite',
  packages: ['redis'],
  async open(options) {
    const registry = await ourRegistry(options);
    return {
      async acquire(key) {
        const lease = await registry.readWrite(key).write.lock();
        return () => lease.unlock();
      },
      async acquireShared(key) {
        const lease = await registry.readWrite(key).read.lock();
        return () => lease.unlock();
      },
    };
  },
};
