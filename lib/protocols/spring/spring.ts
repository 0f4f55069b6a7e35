import type { ProtocolSettings } from '../../core/protocol';
import type { LockNames } from '../../redis/names';
import type { Redis } from '../../redis/redis';
import { contended } from '../contended';
import { ScriptedFormat } from '../format/scripted-format';
import type { LockTypeDefinition } from '../registry-parts';
import { SPRING_SCRIPTS } from './spring-scripts';

/** Spring's string key: see spring-scripts.ts. */
export class SpringFormat extends ScriptedFormat {
  readonly #legacyChannel: boolean;
  /** Made for the first lock: it is the same for all locks of the registry. */
  #notification: readonly string[] | undefined;

  constructor(redis: Redis, { fencing, legacyChannel }: ProtocolSettings) {
    super(redis, fencing, SPRING_SCRIPTS, false);
    this.#legacyChannel = legacyChannel;
  }

  channels(names: LockNames): readonly string[] {
    return this.#legacyChannel ? [names.channel, names.legacyChannel] : [names.channel];
  }

  isRelease(message: string, names: LockNames): boolean {
    return message === names.lock;
  }

  notification(names: LockNames): readonly string[] {
    this.#notification ??= this.#legacyChannel ? [names.legacyChannel, 'too'] : [names.legacyChannel];
    return this.#notification;
  }

  protected fence(names: LockNames): string {
    return names.companion('fence');
  }
}

/** Contended on Spring's format, with waiting by polling and sharing by time slices. */
export const SPIN: LockTypeDefinition = (parts) =>
  contended(parts, new SpringFormat(parts.redis, parts.settings), true);

/** Contended on Spring's format, with waiting by notification. */
export const PUB_SUB: LockTypeDefinition = (parts) => contended(parts, new SpringFormat(parts.redis, parts.settings));
