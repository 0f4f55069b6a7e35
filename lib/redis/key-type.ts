import type { Redis } from './redis';
import { Script } from './script';

/**
 * What the key of a lock is.
 *
 * KEYS: lock
 * Returns its type; for a sorted set also the kind of its first member.
 */
const DESCRIBE = new Script(
  'describe a key',
  `
local type = redis.call('TYPE', KEYS[1])
type = type.ok or type
if type ~= 'zset' then return type end
return string.match(redis.call('ZRANGE', KEYS[1], 0, 0)[1] or '', '^(%a+):') or type`,
);

/** What has a key of this type, or a member of this kind. */
const KEYS_OF: Readonly<Record<string, string>> = {
  string: 'a lock of type spin, pub-sub or fair',
  hash: 'a lock of type redisson or redisson-fair',
  semaphore: 'a semaphore',
  read: 'a read/write lock',
  write: 'a read/write lock',
};

/**
 * For an error about a key of the wrong type: an error that says what the key is, and what it is used as here.
 * `timeout` in ms.
 */
export async function explainWrongType(
  error: unknown,
  redis: Pick<Redis, 'run'>,
  name: string,
  usedAs: string,
  timeout: number,
): Promise<unknown> {
  try {
    const type = await redis.run(DESCRIBE, [name], [], timeout, String);
    if (type === 'none') return error;
    const what = KEYS_OF[type] ?? `a key of type ${type}`;
    return new Error(`WRONGTYPE It is ${what} in Redis, and it is used as ${usedAs} here`, { cause: error });
  } catch {
    // A user without the right to ask.
    return error;
  }
}
