import type { Results, ResultWatch } from '../core/backend';
import type { Redis } from '../redis/redis';
import { Script } from '../redis/script';
import type { Subscriber } from '../redis/subscriber';
import type { Subscription } from '../redis/subscription';
import { numberIn, textIn } from './format/replies';
import { LONGEST_SLEEP } from './waiting';

/*
 * The results of `once`: a string with an expiry beside the lock, in its hash slot. The process that keeps one publishes
 * on the channel of the same name.
 */

/** KEYS: the result. Returns its text, or nil. */
export const READ_RESULT = new Script('read a result', "return redis.call('GET', KEYS[1])");

/** KEYS: the result. Returns how many there were. */
export const FORGET_RESULT = new Script('forget a result', "return redis.call('DEL', KEYS[1])");

/** The results beside the locks of one registry in Redis. Without a subscriber, waiters poll. `idleBetweenTries` in ms. */
export function resultsIn(redis: Redis, subscriber: Subscriber | undefined, idleBetweenTries: number): Results {
  return {
    read: (name, timeout) =>
      redis.run(READ_RESULT, [name], [], timeout, (reply) =>
        reply === null ? undefined : textIn(READ_RESULT, reply, reply),
      ),
    forget: (name, timeout) =>
      redis.run(FORGET_RESULT, [name], [], timeout, (reply) => numberIn(FORGET_RESULT, reply, reply) > 0),
    watch: (name) => watchOf(name, subscriber, idleBetweenTries),
  };
}

/** Messages are hints, and may be lost: a waiter reads the result again after `pause`. */
function watchOf(channel: string, subscriber: Subscriber | undefined, idleBetweenTries: number): ResultWatch {
  let subscription: Subscription | undefined;
  return {
    get pause() {
      return idleBetweenTries * (subscription?.isOpen ? LONGEST_SLEEP : 1);
    },
    on(wake) {
      if (subscription?.isOver !== false) subscription = subscriber?.subscribe([channel], () => subscription?.wake());
      const joined = subscription;
      const stop = joined?.onWake(wake);
      joined?.join();
      return () => {
        stop?.();
        joined?.leave();
      };
    },
  };
}
