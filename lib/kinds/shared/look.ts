import { isExclusive, SHARED_KINDS, type SharedKind } from '../../api/lock-types';
import { isOfLibrary } from '../../api/owner-name';
import type { LockNames } from '../../redis/names';
import {
  companion,
  type Look,
  listOf,
  lockOfCompanion,
  numberOf,
  pairsOf,
  type Queue,
  type Reader,
} from '../common/look';

const MEMBER = new RegExp(`^(${SHARED_KINDS.join('|')}):(.+)$`);

/** Semaphores and read/write locks: a sorted set of those that have it. */
export const SHARED_LOOK: Look = {
  keyType: 'zset',
  mayBeLock: `local kind = string.match((ask('ZRANGE', name, 0, 0) or {})[1] or '', '^(%a+):')
    return kind and string.find(' ${SHARED_KINDS.join(' ')} ', ' ' .. kind .. ' ', 1, true)`,
  /** That of Spring's locks. */
  channels: [],
  queue: { keyType: 'hash', pattern: '^{[^}]+}:waiters', lockOf: (name) => lockOfCompanion(name, 'waiters') },
  async held(names, reader) {
    const [first = ''] = listOf(await reader.ask('ZRANGE', names.lock, '0', '0'));
    const kind = MEMBER.exec(first)?.[1] as SharedKind | undefined;
    if (kind === undefined) return undefined;
    const [members, { queue, permits }, fencingToken] = await Promise.all([
      reader.ask('ZRANGE', names.lock, '0', '-1', 'WITHSCORES'),
      waiters(names, reader),
      isExclusive(kind) ? numberOf(reader, 'GET', companion(names, 'fence')) : null,
    ]);
    const owners = pairsOf(members).flatMap(([member, end]) => {
      const owner = MEMBER.exec(member)?.[2] ?? '';
      const remaining = Math.round(Number(end) - reader.now());
      return isOfLibrary(owner) && remaining > 0 ? [{ owner, remaining }] : [];
    });
    return { owners: owners.reverse(), kind, permits, queue, fencingToken };
  },
  async waitedFor(names, reader) {
    const { queue, permits } = await waiters(names, reader);
    return queue[0]?.kind && { owners: [], kind: queue[0].kind, permits, queue };
  },
};

async function waiters(
  names: LockNames,
  { ask, now }: Reader,
): Promise<{ readonly queue: Queue; readonly permits: number | null }> {
  const fields = pairsOf(await ask('HGETALL', companion(names, 'waiters')));
  // "<the number>:<when it was given>"
  const given = fields.find(([field]) => field === 'permits')?.[1];
  const tickets = fields.flatMap(([field, value]) => {
    const [, kind, owner = ''] = MEMBER.exec(field) ?? [];
    const [arrival = 0, until = 0] = value.split(':').map(Number);
    // A process that has not polled for too long has lost its ticket.
    if (!isOfLibrary(owner) || !(until > now())) return [];
    // 0: readers that come before others, since a writer has left.
    return [{ owner, kind: kind as SharedKind, arrival, ...(arrival > 0 ? { since: arrival / 1_000 } : {}) }];
  });
  const permits = given === undefined ? null : Number.parseInt(given, 10);
  return { queue: tickets.sort((one, other) => one.arrival - other.arrival), permits };
}
