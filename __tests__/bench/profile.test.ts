import { describe, expect, it } from '@jest/globals';
import { type FrameNode, Shares } from '../../scripts/bench/profile/frame-tree';
import { ownerOf } from '../../scripts/bench/profile/owners';

/** As V8 reports a call frame. `url` is empty for what is not JavaScript. */
function frame(functionName: string, url: string, self: number, ...callees: FrameNode[]): FrameNode {
  return { frame: { functionName, url, lineNumber: 0, columnNumber: 0 }, self, callees };
}

function sharesOf(...callees: FrameNode[]): Shares {
  const shares = new Shares();
  shares.add(frame('(root)', '', 0, ...callees), ({ url }) => url);
  return shares;
}

const CLIENT = '/app/node_modules/@redis/client/dist/lib';

describe('A profile of the benchmarks', () => {
  it.each([
    ['core', '/app/lib/core/wait.ts'],
    ['protocols', '/app/lib/protocols/fair/ticket.ts'],
    ['redis', '/app/lib/redis/redis.ts'],
    ['registry', '/app/lib/registry/settings.ts'],
    ['registry', '/app/lib/internal/clock.ts'],
    ['asyncMutex', '/app/node_modules/async-mutex/lib/Semaphore.js'],
    ['floor', '/app/scripts/bench/candidates/floor-fifo.ts'],
    ['bench', '/app/scripts/bench/candidates/ours.ts'],
    ['bench', '/app/scripts/bench/loads/cycles.ts'],
    ['encoder', `${CLIENT}/RESP/encoder.js`],
    ['encoder', `${CLIENT}/commands/EVALSHA.js`],
    ['parser', `${CLIENT}/RESP/decoder.js`],
    ['queue', `${CLIENT}/client/commands-queue.js`],
    ['client', `${CLIENT}/client/socket.js`],
    ['streams', 'node:internal/streams/writable'],
    ['streams', 'node:net'],
    ['tasks', 'node:internal/process/task_queues'],
    ['tasks', 'node:internal/timers'],
    ['node', 'node:internal/validators'],
  ])('counts code for %s by its source: %s', (owner, url) => {
    expect(ownerOf({ functionName: 'f', url })).toBe(owner);
  });

  it('counts a builtin for the function that called it', () => {
    const shares = sharesOf(frame('add', '/app/lib/redis/redis.ts', 1, frame('push', '', 4, frame('grow', '', 2))));
    expect([...shares.byOwner]).toEqual([['redis', 7]]);
    expect([...shares.byFunction]).toEqual([['lib/redis/redis.ts add', 7]]);
  });

  it('counts native writes to a socket for the kernel, not for their caller', () => {
    const shares = sharesOf(
      frame('(program)', '', 3),
      frame('writeGeneric', 'node:internal/stream_base_commons', 5, frame('writeUtf8String', '', 7)),
    );
    expect(Object.fromEntries(shares.byOwner)).toEqual({ kernel: 10, streams: 5 });
  });

  it('does not count an idle process', () => {
    const shares = sharesOf(frame('(idle)', '', 100), frame('(garbage collector)', '', 1));
    expect([...shares.byOwner]).toEqual([['gc', 1]]);
    expect(shares.total).toBe(1);
  });

  it('names functions by the path in their package', () => {
    const shares = sharesOf(
      frame('write', `${CLIENT}/client/socket.js`, 1),
      frame('f', '/lib/app/lib/core/hold.ts', 1),
    );
    const names = ['@redis/client/dist/lib/client/socket.js write', 'lib/core/hold.ts f'];
    expect([...shares.byFunction.keys()]).toEqual(names);
  });

  it('adds profiles up', () => {
    const shares = sharesOf(frame('send', '/app/lib/core/acquire.ts', 2));
    shares.add(frame('send', '/app/lib/core/acquire.ts', 3), ({ url }) => url);
    expect(shares.byOwner.get('core')).toBe(5);
  });
});
