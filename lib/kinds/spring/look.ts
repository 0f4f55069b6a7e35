import { SPRINGS } from '../../api/owner-name';
import { companion, type OneOwner } from '../common/look';

/** bytes; no owner value is longer. */
const LONGEST_OWNER = 140;

/** A string that has the owner value in it. */
export const SPRING_LOOK: OneOwner = {
  mayBeLock: `if prefix ~= '' then return string.sub(name, 1, #prefix) == prefix end
    return isOwner(ask('GETRANGE', name, 0, ${LONGEST_OWNER}) or '', uuid .. '$')`,
  channels: ['*-channel:*'],
  async owner(names, { ask }) {
    const owner = await ask('GETRANGE', names.lock, '0', '255');
    // An empty text may also say that there is no such key: its remaining time tells.
    return typeof owner === 'string' ? owner : undefined;
  },
  others: SPRINGS,
  showsAll: true,
  counter: (names) => companion(names, 'fence'),
  channel: ({ lock }) => lock,
  notified: 'pub-sub',
};
