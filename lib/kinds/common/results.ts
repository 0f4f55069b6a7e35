import type { Results, ResultWatch } from '../../core/backend';
import { serverErrorCode } from '../../redis/failure';
import { explainWrongType } from '../../redis/key-placement';
import type { Redis } from '../../redis/redis';
import { Script } from '../../redis/script';
import type { Subscriber } from '../../redis/subscriber';
import type { Subscription } from '../../redis/subscription';
import { arrayIn, numberIn, textIn } from './replies';
import { kindLua } from './script-parts';
import { LONGEST_SLEEP } from './waiting';

/*
 * The results of `once`: a string with an expiry beside the lock, in its hash slot. The script that stores one
 * publishes on the channel of the same name. A `forget` while the lock is held leaves a mark: a task that began before it stores
 * nothing, whatever process it runs in.
 */

/** ms; a mark lasts for longer than a task that it is meant for. */
const MARKED_FOR = 86_400_000;

/** KEYS: the result. Returns its text, or nil. */
export const READ_RESULT = new Script('read a result', "return redis.call('GET', KEYS[1])");

/** KEYS: the result, the mark. Returns the text of both; for what is not there nil. */
export const BEGIN_RESULT = new Script(
  'begin a result',
  "return { redis.call('GET', KEYS[1]), redis.call('GET', KEYS[2]) }",
);

export const FORGET_RESULT = new Script('forget a result', kindLua('common/forget-result'));

/** The results beside the locks of one registry in Redis. Without a subscriber, waiters poll. `idleBetweenTries` in ms. */
export function resultsIn(redis: Redis, subscriber: Subscriber | undefined, idleBetweenTries: number): Results {
  const explained = (name: string, timeout: number) => async (error: unknown) => {
    const isOther = serverErrorCode(error) === 'WRONGTYPE';
    throw isOther ? await explainWrongType(error, redis, name, `a result of once, in "${name}",`, timeout) : error;
  };
  return {
    read: (name, timeout) =>
      redis
        .run(READ_RESULT, [name], [], timeout, (reply) => textOrNone(READ_RESULT, reply, reply))
        .catch(explained(name, timeout)),
    begin: ({ result, forgotten }, timeout) =>
      redis
        .run(BEGIN_RESULT, [result, forgotten], [], timeout, (reply) => {
          const [text, mark] = arrayIn(BEGIN_RESULT, reply, 2);
          return {
            text: textOrNone(BEGIN_RESULT, reply, text),
            mark: textOrNone(BEGIN_RESULT, reply, mark) ?? '',
          };
        })
        .catch(explained(result, timeout)),
    forget: ({ result, forgotten, lock }, mark, timeout) =>
      redis.run(
        FORGET_RESULT,
        [result, forgotten, lock],
        [mark, String(MARKED_FOR)],
        timeout,
        (reply) => numberIn(FORGET_RESULT, reply, reply) > 0,
      ),
    watch: (name) => watchOf(name, subscriber, idleBetweenTries),
  };
}

function textOrNone(script: Script, reply: unknown, value: unknown): string | undefined {
  return value === null || value === undefined ? undefined : textIn(script, reply, value);
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
