import type { RedisServer } from '../server/redis-server';
import { type Host, hostOf, ownersOf, type World } from '../world';

/** What is kept on purpose when nobody holds anything: counters behind fencing tokens. */
const COUNTER = /(:fence|redisson_lock_token.*)$/;

/** In Redisson's format these have none. */
const ENDLESS = /^redisson_lock_(queue|timeout):/;

/** ms, the longest ttl: when the key of an attempt would have ended, the process does not look for it any more. */
const FOLLOWED_FOR = 30_000;

/** What stands before an owner of a shared lock. */
const KIND = /^(semaphore|read|write):/;

/** Everything in Redis that mentions a lease or a position in a queue of `one`, or of any process that is not gone. */
export function checkLeftovers(world: World, when: string, one?: Host): void {
  const { server, violations } = world;
  for (const key of server.keys.keys()) {
    if (COUNTER.test(key)) continue;
    if (server.keys.expiresAt(key) === Number.POSITIVE_INFINITY && !ENDLESS.test(key))
      violations.report(
        'left in Redis',
        key,
        `${when}, ${key} has no expiry: ${texts(server, key)
          .map(([text]) => text)
          .join(', ')}`,
      );
    for (const [text, leaseEnd] of texts(server, key)) {
      const owner = text.replace(KIND, '');
      const host = hostOf(world, owner);
      if (host === undefined || (one !== undefined && host !== one)) continue;
      if (!host.process.isAlive || host.closedInTrouble || host.leftByClose.has(key)) continue;
      const end = Math.min(server.keys.expiresAt(key) ?? Number.POSITIVE_INFINITY, leaseEnd);
      // It would have ended, but for the clock that was set back: it expires at the latest (P2).
      if ((server.isSetBack || server.hasEndOfBefore(key)) && end - server.time <= server.behind) continue;
      // The server stood still for so long. A position in a queue, which may have no expiry, is removed whenever it comes.
      if ((host.cameLate.get(owner) ?? 0) > FOLLOWED_FOR && ownersOf(server, key).includes(owner)) continue;
      const life = end === Number.POSITIVE_INFINITY ? 'for ever' : `for ${end - server.time} ms`;
      violations.report('left in Redis', key, `${when}, ${key} is left ${life} with ${owner} of ${host.process.name}`);
    }
  }
}

/**
 * The texts in which a key may mention owners, and when a lease of a shared lock ends, which the key may outlive. One that
 * has ended is in its key until the next script.
 */
function texts({ keys, time }: RedisServer, key: string): [text: string, leaseEnd: number][] {
  const withKey = (all: readonly string[]) => all.map((text): [string, number] => [text, Number.POSITIVE_INFINITY]);
  switch (keys.kind(key)) {
    case 'string':
      return withKey([keys.get(key, 'string') ?? '']);
    case 'zset':
      return [...(keys.get(key, 'zset') ?? [])].flatMap(([text, score]): [string, number][] => {
        if (!KIND.test(text)) return withKey([text]);
        return score <= time ? [] : [[text, score]];
      });
    case 'hash':
      return withKey([...(keys.get(key, 'hash') ?? [])].flat());
    default:
      return withKey(keys.get(key, 'list') ?? []);
  }
}
