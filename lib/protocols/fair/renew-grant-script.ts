import { LockScript } from '../../redis/script';
import { isFound } from '../format/replies';
import { EXTEND, RETURN_UNLESS_OWNED } from '../spring/spring-scripts';

/**
 * The first renewal of a grant by hand-over: as the renewal of spring, and the grant is noted as claimed. Else a lease
 * that ended by its ttl would look like a grant that lapsed, and its process would be passed over.
 *
 * KEYS: lock, tickets
 * ARGV: owner, ttl in ms
 * Returns as the script of spring: 1 the key has the ttl; { life in ms }; 0 no key; -1 the key of another owner.
 */
export const RENEW_GRANT = new LockScript(
  'renew a grant (fair)',
  `${RETURN_UNLESS_OWNED}
if redis.call('HGET', KEYS[2], 'granted') == ARGV[1] then redis.call('HDEL', KEYS[2], 'granted') end
${EXTEND}`,
  isFound,
  isFound,
);
