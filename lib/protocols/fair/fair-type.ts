import { SharedTimer } from '../../internal/shared-timer';
import { STRING_HELD } from '../format/script-parts';
import { fairInspector } from '../inspector';
import type { LockTypeDefinition } from '../registry-parts';
import { LONGEST_SLEEP } from '../waiting';
import { FairProtocol } from './fair-protocol';
import { QueueFormat } from './queue-format';

/** A queue in Redis on Spring's format. */
export const FAIR: LockTypeDefinition = (parts) => {
  const { redis, settings } = parts;
  const { idleBetweenTries, commandTimeout, unavailableAfter, sharedWithPollers } = settings;
  const subscriber = parts.subscriber(redis.isCluster, false);
  const pollTimer = new SharedTimer();
  const longestPollInterval = LONGEST_SLEEP * idleBetweenTries;
  const format = new QueueFormat(redis, settings, subscriber, longestPollInterval);
  const onNotificationRefused = parts.warnNotificationRefused;
  const services = {
    format,
    subscriber,
    pollTimer,
    longestPollInterval,
    idleBetweenTries,
    sharedWithPollers,
    commandTimeout,
    unavailableAfter,
    onNotificationRefused,
  };
  return {
    held: STRING_HELD,
    inspector: fairInspector(redis, format),
    open(names) {
      format.assertNames(names);
      return new FairProtocol(names, services);
    },
    close: () => pollTimer.close(),
  };
};
