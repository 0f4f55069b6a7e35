import type { Ownership } from '../../core/protocol';
import { clock } from '../../internal/clock';
import type { LockNames } from '../../redis/names';
import type { Redis } from '../../redis/redis';
import { ownershipIn, unknownOwnership } from '../format/replies';
import { RENEW_GRANT } from './fair-scripts';

/** The first renewal of a grant by hand-over, which gives its key the full ttl. */
export class FirstRenewal {
  readonly #redis: Redis;
  /** ms by which the wait for replicas may delay the answer. */
  readonly #replicaTimeout: number;
  /** The connection over which the server is known to have the script. */
  #loadedOn: number | undefined;

  constructor(redis: Redis, replicaTimeout: number) {
    this.#redis = redis;
    this.#replicaTimeout = redis.isReplicated ? replicaTimeout : 0;
  }

  /**
   * Its command is issued before this function returns. Never rejects. As text, unless the server is known to have the
   * script: a task may block the event loop before a second round trip. `ttl`, `timeout` in ms.
   */
  async send(names: LockNames, owner: string, ttl: number, timeout: number): Promise<Ownership> {
    const sentAt = clock.now();
    const { connectionEpoch } = this.#redis;
    const asText = connectionEpoch === undefined || connectionEpoch !== this.#loadedOn;
    const limit = timeout + this.#replicaTimeout;
    const read = (reply: unknown): Ownership => {
      this.#loadedOn = connectionEpoch;
      return ownershipIn(RENEW_GRANT, reply, sentAt, ttl);
    };
    try {
      return await this.#redis.runNow(RENEW_GRANT, [names.lock], [owner, String(ttl)], limit, asText, read);
    } catch (cause) {
      return unknownOwnership(cause, read);
    }
  }
}
