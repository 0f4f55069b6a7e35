import { REDISSONS } from '../../api/owner-name';
import { listOf, type OneOwner } from '../common/look';
import { CHANNEL, redissonName, TOKEN } from './keys';

/** A hash with one field, which is the owner value. */
export const REDISSON_LOOK: OneOwner = {
  mayBeLock: "return ask('HLEN', name) == 1 and isOwner((ask('HKEYS', name) or {})[1] or '', uuid .. ':%d+$')",
  channels: [`${CHANNEL}:*`],
  sharded: [`${CHANNEL}:*`],
  /** What belongs to a lock whose name has a brace in it. */
  isBeside: (name) => /^redisson_lock_(queue|timeout|token):/.test(name),
  async owner(names, { ask }) {
    return Number(await ask('HLEN', names.lock)) === 1 ? listOf(await ask('HKEYS', names.lock))[0] : undefined;
  },
  others: REDISSONS,
  othersName: 'Redisson (Java)',
  mayLast: true,
  counter: (names) => redissonName(names, TOKEN),
  channel: (names) => redissonName(names, CHANNEL),
};
