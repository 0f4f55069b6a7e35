import { describe, expect, it } from '@jest/globals';
import { type FrameNode, ownerOf, sharesOf } from '../../support/cpu-shares';

/** `source` is empty for what is not JavaScript. */
function frame(name: string, source: string, self: number, ...callees: FrameNode[]): FrameNode {
  return { name, source, self, callees };
}

const CLIENT = '/app/node_modules/@redis/client/dist/lib';

describe('A profile of the benchmarks', () => {
  it.each([
    ['this library: core', '/app/lib/core/wait.ts'],
    ['this library: protocols', '/app/lib/protocols/fair/ticket.ts'],
    ['this library: redis', '/app/lib/redis/redis.ts'],
    ['this library: the rest', '/app/lib/registry/settings.ts'],
    ['async-mutex', '/app/node_modules/async-mutex/lib/Semaphore.js'],
    ['the floor itself', '/app/scripts/bench/floors.ts'],
    ['the load of the bench', '/app/scripts/bench/loads.ts'],
    ['the client', `${CLIENT}/RESP/encoder.js`],
    ['Node: sockets', 'node:internal/streams/writable'],
    ['Node: promises, timers', 'node:internal/process/task_queues'],
    ['Node: the rest', 'node:internal/validators'],
  ])('counts code for %s by its source: %s', (owner, source) => {
    expect(ownerOf('f', source)).toBe(owner);
  });

  it('counts a builtin for the function that called it, and names functions by the path in their package', () => {
    const called = frame('add', '/lib/app/lib/redis/redis.ts', 1, frame('push', '', 4, frame('grow', '', 2)));
    const { byOwner, byFunction } = sharesOf(frame('(root)', '', 0, called, frame('write', `${CLIENT}/socket.js`, 1)));
    expect(byOwner).toEqual({ 'this library: redis': 7, 'the client': 1 });
    expect(byFunction).toEqual({ 'lib/redis/redis.ts add': 7, '@redis/client/dist/lib/socket.js write': 1 });
  });

  it('counts native writes to a socket for the kernel, garbage collection for itself, and no idle time', () => {
    const writing = frame('writeGeneric', 'node:internal/stream_base_commons', 5, frame('writeUtf8String', '', 7));
    const others = [frame('(program)', '', 3), frame('(idle)', '', 100), frame('(garbage collector)', '', 1)];
    const { byOwner } = sharesOf(frame('(root)', '', 0, writing, ...others));
    expect(byOwner).toEqual({ 'kernel, and C++ of Node': 10, 'Node: sockets': 5, 'garbage collection': 1 });
  });
});
