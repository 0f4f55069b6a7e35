import { setImmediate as afterWrite } from 'node:timers/promises';
import type { NodeCandidate, Release } from './candidate';
import { rawNodeRedis } from './clients';
import { nextOwner, RawScripts } from './raw-scripts';

/** ms; as the default of our option `commandTimeout`. */
const COMMAND_TIMEOUT = 5_000;

/** ms; a grant that its process does not claim by a renewal ends. */
const CLAIM_WINDOW = '1000';

interface Caller {
  /** ms */
  readonly calledAt: number;
  enter(owner: string): void;
}

/**
 * What the rules of `fair` cost at least, on the usual path: a queue in Redis in the order of calls over all processes,
 * where the first caller of each process has a position; a grant that ends unless it is claimed; a message to the
 * process that is granted, which claims it with a renewal and enters without waiting for the reply; a hand-over in the
 * reply where the next caller is of the same process; a deadline for each command. It has none of what the rules need
 * when something fails: no polls, no cleaning up, no later renewals, no loss, no aborts, no pauses for pollers.
 */
export const floorFair: NodeCandidate = {
  id: 'floor-fair',
  title: 'floor: the rules of fair',
  kind: 'floor',
  isVariant: true,
  packages: ['redis'],
  async open({ address, ttl }) {
    const client = await rawNodeRedis(address);
    const scripts = await RawScripts.load(client, 'takeOrQueueByCall', 'handOverByCall', 'renewGrant');
    const deadlines = new Deadlines();
    const ttlArgument = String(ttl);
    /** By key: the callers that wait, while the process has the lock or a position in its queue. */
    const waiting = new Map<string, Caller[]>();
    /** The keys of positions in Redis. */
    const positions = new Map<string, string>();

    const age = ({ calledAt }: Caller) => String(Math.round(1000 * (performance.now() - calledAt)));
    const run = (name: Parameters<RawScripts['run']>[0], keys: string[], ...args: string[]) =>
      deadlines.limit(scripts.run(name, keys, ...args));

    const enter = (owner: string) => {
      const key = positions.get(owner) as string;
      positions.delete(owner);
      waiting.get(key)?.shift()?.enter(owner);
    };
    const ask = async (key: string, first: Caller) => {
      const owner = nextOwner();
      positions.set(owner, key); // before the request: the message may come before its reply
      if ((await run('takeOrQueueByCall', [key, `${key}:queue`], owner, ttlArgument, age(first))) === 1) enter(owner);
    };
    const release = async (key: string, owner: string) => {
      const callers = waiting.get(key) as Caller[];
      const [next] = callers;
      const nextsOwner = next === undefined ? '' : nextOwner();
      if (next !== undefined) positions.set(nextsOwner, key);
      const ageOfNext = next === undefined ? '' : age(next);
      const keys = [key, `${key}:queue`];
      const granted = await run('handOverByCall', keys, owner, ttlArgument, CLAIM_WINDOW, nextsOwner, ageOfNext);
      if (granted !== '') enter(nextsOwner);
      else if (next === undefined && callers[0] !== undefined) await ask(key, callers[0]);
      else if (next === undefined) waiting.delete(key);
    };

    const subscriber = await client.newSubscriber();
    await subscriber.subscribe(`fair:${process.pid}`, async (owner) => {
      void run('renewGrant', [positions.get(owner) as string], owner, ttlArgument);
      await afterWrite();
      enter(owner);
    });
    return {
      acquire: (key) =>
        new Promise<Release>((resolve) => {
          const caller = {
            calledAt: performance.now(),
            enter: (owner: string) => resolve(() => release(key, owner)),
          };
          const callers = waiting.get(key);
          if (callers !== undefined) {
            callers.push(caller);
            return;
          }
          waiting.set(key, [caller]);
          void ask(key, caller);
        }),
    };
  },
};

/** Deadlines of commands, with one timer. All have the same time, so they end in the order in which they began. */
class Deadlines {
  readonly #open = new Set<{ readonly endsAt: number; end(): void }>();

  constructor() {
    setInterval(() => this.#endDue(), COMMAND_TIMEOUT / 10).unref();
  }

  limit<T>(command: Promise<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      const deadline = {
        endsAt: performance.now() + COMMAND_TIMEOUT,
        end: () => reject(new Error('Redis did not answer')),
      };
      this.#open.add(deadline);
      command.then((reply) => {
        this.#open.delete(deadline);
        resolve(reply);
      }, reject);
    });
  }

  #endDue(): void {
    const now = performance.now();
    for (const deadline of this.#open) {
      if (deadline.endsAt > now) return;
      this.#open.delete(deadline);
      deadline.end();
    }
  }
}
