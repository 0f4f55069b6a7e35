import { STRING_HELD } from '../held-scripts';
import { fairInspector } from '../inspection/fair-inspector';
import type { LockTypeDefinition } from '../lock-type';
import { FairFormat } from './fair-format';
import { FairProtocol } from './fair-protocol';

/** A queue in Redis on Spring's format. */
export const FAIR: LockTypeDefinition = {
  held: STRING_HELD,
  protocols(parts) {
    const { redis, settings, warnNotificationRefused } = parts;
    const format = new FairFormat(redis, settings, parts.subscriber(redis.isCluster, false), warnNotificationRefused);
    return {
      inspector: fairInspector(redis, format),
      open(names) {
        format.assertNames(names);
        return new FairProtocol(names, format);
      },
      close: () => format.pollTimer.close(),
    };
  },
};
