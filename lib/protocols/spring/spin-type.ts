import { contended } from '../contended/contended';
import { STRING_HELD } from '../held-scripts';
import { springInspector } from '../inspection/spring-inspector';
import type { LockTypeDefinition } from '../lock-type';
import { USUAL_PACE_OF_POLLING } from '../pollers';
import { TimeSlice } from '../sharing/time-slice';
import { Polling } from '../waiting/polling';
import { SpringFormat } from './spring-format';

/** ms; the default of `handOver`: the first slice, and the longest one of a process that nobody contends with. */
const SLICE = 400;
const LONGEST_SLICE = 1_600;

/** Contended on Spring's format, with waiting by polling and sharing by time slices. */
export const SPIN: LockTypeDefinition = {
  held: STRING_HELD,
  protocols(parts) {
    const { redis, settings } = parts;
    const { idleBetweenTries, handOver } = settings;
    const slices = { first: handOver ?? SLICE, longest: handOver ?? LONGEST_SLICE, idleBetweenTries };
    const format = new SpringFormat(redis, settings);
    return contended(springInspector(redis, format, false), {
      format,
      waiting: (_names, pollers) => new Polling(idleBetweenTries, pollers),
      sharing: () => new TimeSlice(slices),
      handsOver: handOver !== 0,
      pollers: () => parts.pollers(USUAL_PACE_OF_POLLING),
      onNotificationRefused: parts.warnNotificationRefused,
    });
  },
};
