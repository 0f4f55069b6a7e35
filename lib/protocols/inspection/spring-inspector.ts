import type { Redis } from '../../redis/redis';
import type { SpringFormat } from '../spring/spring-format';
import { OWNER_OF_STRING, publishName, scripts } from './inspection-scripts';
import { Inspector } from './inspector';

/** Notified by: channels. */
const SCRIPTS = scripts('spring', OWNER_OF_STRING, undefined, publishName(4));

/** For `spin` and `pub-sub`. `areListening`: their waiters listen for releases. */
export function springInspector(redis: Redis, format: SpringFormat, areListening: boolean): Inspector {
  const listeners = { listeners: (names: { channel: string }) => ['NUMSUB', names.channel] as const };
  return new Inspector(redis, {
    scripts: SCRIPTS,
    keys: (names) => format.keys(names),
    ...(areListening && format.countsListeners ? listeners : {}),
    notification: (names) => format.channels(names),
    format,
  });
}
