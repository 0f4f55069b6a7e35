import type { Hold } from '../../lib/core/hold';
import type { Keep, Refusal } from '../../lib/core/protocol';
import { Wait } from '../../lib/core/wait';
import { FairFormat } from '../../lib/kinds/fair/format';
import { FairProtocol } from '../../lib/kinds/fair/kind';
import { POLL } from '../../lib/kinds/fair/scripts';
import { LockNames } from '../../lib/redis/names';
import { promiseJobs } from './fake-clock';
import { fakeParts, holdOf } from './fake-redis';

/** A reply that is a table. */
export const table = (more: Partial<Record<string, unknown>> = {}): unknown[] => {
  const said = {
    life: 500,
    score: '7',
    owner: '',
    token: '',
    holder: null,
    found: 1,
    refused: 0,
    unreachable: 0,
    ...more,
  };
  return [...Object.values(said).slice(0, 8), ...('pauseIn' in more ? [more.pauseIn] : [])];
};

export function startFair(more: object = {}, { cluster = false, replicated = false } = {}) {
  const fake = fakeParts(more);
  const { parts, redis, subscriber } = fake;
  redis.isCluster = cluster;
  redis.isReplicated = replicated;
  const format = new FairFormat(parts);
  const names = new LockNames('r', 'k');
  const lock = new FairProtocol(names, format);
  const attempt = (reply: unknown, hold = holdOf(lock)) => {
    const answer = lock.attempt(hold, 300);
    redis.last.reply(reply);
    return answer;
  };
  /** A caller of this process waits; what its wait resolves to. */
  const queue = async (hold = holdOf(lock), how: object = {}) => {
    const refusal = (await attempt(table(how), hold)) as Refusal;
    const wait = new Wait('k', 10_000, undefined);
    const outcome = lock.wait(hold, refusal, wait);
    return { hold, outcome, wait };
  };
  /** Messages reach this process, of which the first says that one may have been missed. */
  const open = async () => {
    subscriber.last.opened();
    redis.sent.find(({ script }) => script === POLL)?.reply(table());
    await promiseJobs();
    redis.sent.length = 0;
  };
  const release = async (reply: unknown, owner = 'me:1', keep?: Keep) => {
    const found = lock.release(owner, 300, keep);
    redis.last.reply(reply);
    return found;
  };
  const exchange = (reply: unknown, owner = 'me:1', to: Hold = holdOf(lock, 'me:2'), keep?: Keep) => {
    const exchanged = lock.exchange(owner, to, 300, keep);
    redis.last.reply(reply);
    return exchanged;
  };
  return { ...fake, format, names, lock, attempt, queue, open, release, exchange };
}

type Started = ReturnType<typeof startFair>;

/** The polls that were sent since. */
export const polls = ({ redis }: Started) => redis.news.filter((sent) => sent.startsWith('poll'));
