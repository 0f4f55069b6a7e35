import { describe, expect, it } from '@jest/globals';
import { Batches } from '../../lib/redis/batches';
import type { Receiver, ScriptRun } from '../../lib/redis/call';
import type { EvalOptions } from '../../lib/redis/client';
import { KeyPlacement } from '../../lib/redis/key-placement';
import { LockScript, type Script } from '../../lib/redis/script';
import { until } from '../support/until';

const SCRIPT = new LockScript('test', 'return 1', () => true);

const names = (count: number, prefix = 'key'): string[] => Array.from({ length: count }, (_, i) => `${prefix}-${i}`);

/** Batches over a client that records commands and answers when it is told to. */
function recorded({ isProven = true, mayHalve = true } = {}) {
  const placement = new KeyPlacement();
  if (isProven) placement.foundTogether(names(30));
  const commands: { keys: string[]; receiver: Receiver }[] = [];
  const run = (_: Script, { keys = [] }: EvalOptions, receiver: Receiver) => void commands.push({ keys, receiver });
  const batches = new Batches({ run }, placement, true, mayHalve);
  let answered = 0;
  const call = (key: string): ScriptRun => ({
    script: SCRIPT,
    keys: [key],
    args: ['owner'],
    isOver: false,
    answer: () => answered++,
    fail: (error) => {
      throw error;
    },
  });
  const add = (keys: readonly string[]): void => {
    for (const key of keys) batches.add(call(key));
  };
  const answer = (command: number): void => {
    const { keys, receiver } = commands[command] as (typeof commands)[number];
    receiver.answer(keys.map(() => 1));
  };
  return { add, answer, sizes: () => commands.map(({ keys }) => keys.length), commands, answered: () => answered };
}

const anotherTick = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

describe('many calls at the same time', () => {
  it('go in two halves, the second one a tick later', async () => {
    const { add, answer, sizes, answered } = recorded();
    add(names(100));
    await Promise.resolve();
    expect(sizes()).toEqual([50]);
    await until(() => sizes().length === 2);
    expect(sizes()).toEqual([50, 50]);
    answer(0);
    answer(1);
    expect(answered()).toBe(100);
  });

  it('go in two writes of a client that writes what was called in one tick', async () => {
    const placement = new KeyPlacement();
    placement.foundTogether(names(30));
    const writes: number[] = [];
    let unwritten = 0;
    // As node-redis: the first command asks for a tick, in which all that came until then is written.
    const run = (_: Script, { keys = [] }: EvalOptions) => {
      if (unwritten === 0) {
        setImmediate(() => {
          writes.push(unwritten);
          unwritten = 0;
        });
      }
      unwritten += keys.length;
    };
    const batches = new Batches({ run }, placement, true);
    for (const key of names(100)) {
      const receiver = { isOver: false, answer: () => undefined, fail: () => undefined };
      batches.add({ script: SCRIPT, keys: [key], args: ['owner'], ...receiver });
    }
    await until(() => writes.reduce((sum, n) => sum + n, 0) === 100);
    expect(writes).toEqual([50, 50]);
  });

  it('go as one command while another one is on its way', async () => {
    const { add, answer, sizes } = recorded();
    add(names(40));
    await until(() => sizes().length === 2);
    answer(0);
    add(names(60, 'later'));
    await anotherTick();
    await anotherTick();
    expect(sizes()).toEqual([20, 20, 60]);
  });

  it('go before calls that are made after them', async () => {
    const { add, commands } = recorded();
    add(names(40));
    await Promise.resolve();
    // The first half is on its way, and the second one waits for the next tick.
    add(['later']);
    await anotherTick();
    await anotherTick();
    expect(commands.flatMap(({ keys }) => keys)).toEqual([...names(40), 'later']);
  });

  it.each([
    ['before it is proven that all keys are on one server', { isProven: false }],
    ['over a connection that answers in turn', { mayHalve: false }],
  ])('go as one command %s', async (_, options) => {
    const { add, sizes } = recorded(options);
    add(names(60));
    await anotherTick();
    await anotherTick();
    expect(sizes()).toEqual([60]);
  });

  it('go as one command where they are too few', async () => {
    const { add, sizes } = recorded();
    add(names(20));
    await anotherTick();
    await anotherTick();
    expect(sizes()).toEqual([20]);
  });
});
