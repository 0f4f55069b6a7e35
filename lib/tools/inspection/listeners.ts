import { holderOf } from '../../api/owner-name';
import type { Heard } from '../../kinds/common/look';
import { LOOKS } from '../../kinds/looks';
import { CHANNEL } from '../../kinds/redisson/keys';
import { lockPrefix } from '../../redis/names';
import type { Asked } from './servers';

/** As `inboxOf` names it. */
const REDISSON_INBOX = new RegExp(`^${CHANNEL}:\\{(?:(.*):)?@(.*)\\}$`, 's');

type Counts = readonly (readonly [channel: string, count: number])[];

/** How many listen to the channels of locks. */
export async function countsOf(server: Asked, isCluster: boolean): Promise<Counts> {
  const listening = async (sharded: string, pattern: string): Promise<Counts> => {
    const channels = (await server.send('PUBSUB', `${sharded}CHANNELS`, pattern)) as unknown[];
    if (channels.length === 0) return [];
    const counts = (await server.send('PUBSUB', `${sharded}NUMSUB`, ...channels.map(String))) as unknown[];
    return channels.map((channel, i) => [String(channel), Number(counts[2 * i + 1])]);
  };
  const counts = Object.values(LOOKS).flatMap(({ channels, sharded = [] }) => [
    ...channels.map((pattern) => listening('', pattern)),
    ...(isCluster ? sharded : []).map((pattern) => listening('SHARD', pattern)),
  ]);
  // Several patterns may find the same channel.
  return [...new Map((await Promise.all(counts)).flat())];
}

/** Who listens, and the registryKeys that channels have in their names. */
export interface Listeners extends Heard {
  /** `owner`: the value of a holder, whose inbox has the registryKey in its name. */
  registryKeyOf(lock: string, owner: string | undefined): string | undefined;
}

/** `undefined`: it is not known of a server. */
export function listenersOf(counts: readonly (Counts | undefined)[]): Listeners {
  const areKnown = !counts.includes(undefined);
  const sums = new Map<string, number>();
  const registryKeys = new Map<string, string>();
  /** What the channels of companions begin with. */
  const companions = new Set<string>();
  for (const [channel, count] of counts.flatMap((one) => one ?? [])) {
    // The channel of a lock has its registryKey twice, unless that is empty.
    const parts = /^(.*)-channel:(\1:.*)$/s.exec(channel) ?? /^()-channel:(.+)$/s.exec(channel);
    const inbox = /^(.*)-channel:@(.*)$/s.exec(channel) ?? REDISSON_INBOX.exec(channel);
    const [, registryKey, name = channel] = inbox ?? parts ?? [];
    if (registryKey !== undefined) registryKeys.set(name, registryKey);
    sums.set(name, (sums.get(name) ?? 0) + count);
    if (!channel.startsWith('{')) continue;
    for (const { index } of channel.matchAll(/:/g)) companions.add(channel.slice(0, index));
  }
  return {
    of: (name) => (areKnown ? (sums.get(name) ?? null) : null),
    has: (name) => sums.has(name),
    below: (companion) => companions.has(companion),
    registryKeyOf(lock, owner) {
      const ofHolder = registryKeys.get(holderOf(owner ?? '').replace(/:[^:]*$/, ''));
      return registryKeys.get(lock) ?? (lock.startsWith(lockPrefix(ofHolder ?? '')) ? ofHolder : undefined);
    },
  };
}
