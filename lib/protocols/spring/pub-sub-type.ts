import { notified } from '../contended/notified';
import { STRING_HELD } from '../held-scripts';
import { springInspector } from '../inspection/spring-inspector';
import type { LockTypeDefinition } from '../lock-type';
import { SpringFormat } from './spring-format';

/** ms; the default of `handOver`. */
const SLICE = 50;

/** Contended on Spring's format, with waiting by notification. */
export const PUB_SUB: LockTypeDefinition = {
  held: STRING_HELD,
  protocols(parts) {
    const { redis, settings } = parts;
    const format = new SpringFormat(redis, settings);
    return notified(parts, format, springInspector(redis, format, true), SLICE);
  },
};
