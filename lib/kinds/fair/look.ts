import { holderOf, isOfLibrary } from '../../api/owner-name';
import { companion, lockOfCompanion, pairsOf, type QueueLook } from '../common/look';
import { processOf, ticketOf } from './ticket';

/** The queue beside a string of Spring's format. */
export const FAIR_LOOK: QueueLook = {
  type: 'fair',
  keyType: 'zset',
  pattern: '^{[^}]+}:queue',
  channels: ['{*}:grants:*'],
  lockOf: (name) => lockOfCompanion(name, 'queue'),
  /** Their positions are the times at which they came, in microseconds. */
  async read(names, { ask, now }) {
    const all = pairsOf(await ask('ZRANGE', companion(names, 'queue'), '0', '-1', 'WITHSCORES'));
    const tickets = all.filter(([owner]) => isOfLibrary(owner));
    const lives = tickets.length > 0 ? pairsOf(await ask('HGETALL', companion(names, 'tickets'))) : [];
    // A hand-over passes over a process that has not polled for too long.
    const dead = new Set(lives.flatMap(([process, life]) => (Number.parseInt(life, 10) < now() ? [process] : [])));
    const alive = tickets.filter(([owner]) => !dead.has(processOf(owner)));
    return alive.map(([owner, score]) => ({ owner, since: Number(score) / 1_000 }));
  },
  /** It was granted from the queue; or a process waits for it, or passes it on: that listens for grants. */
  isSeen(names, owner, { heard }) {
    const ticket = holderOf(owner);
    return (isOfLibrary(owner) && ticket !== ticketOf(ticket)) || heard.below(companion(names, 'grants'));
  },
};
