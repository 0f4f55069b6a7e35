import { SPRINGS } from '../../api/owner-name';
import { beginningOf, companion, type OneOwner } from '../common/look';

/** bytes; no owner value is longer. */
const LONGEST_OWNER = 140;

/** A string that has the owner value in it. */
export const SPRING_LOOK: OneOwner = {
  mayBeLock: `if prefix ~= '' then return string.sub(name, 1, #prefix) == prefix end
    return isOwner(ask('GETRANGE', name, 0, ${LONGEST_OWNER}) or '', uuid .. '$')`,
  channels: ['*-channel:*'],
  /** An empty text may also say that there is no such key: its remaining time tells. */
  owner: (names, reader) => beginningOf(reader, names.lock),
  others: SPRINGS,
  showsAll: true,
  counter: (names) => companion(names, 'fence'),
  channel: ({ lock }) => lock,
  notified: 'pub-sub',
};
