import { describe, expect, it, jest } from '@jest/globals';
import type { RedisClient } from '../../lib';
import { addressOf, canScan, isClusterClient, masterOf, SLOTS, scan } from '../../lib/redis/cluster';
import { isPool, PooledCommands } from '../../lib/redis/pool';
import { mockRedis, silence } from '../support/mock-redis';

describe('A pool', () => {
  const client = (isReady = true) => {
    const withCommandOptions = jest.fn(() => commands);
    const commands = { ...mockRedis(), isOpen: true, isReady, withCommandOptions };
    return commands;
  };

  function poolOf(...clients: RedisClient[]) {
    let calls = 0;
    const execute = async (run: (one: RedisClient) => Promise<unknown>) =>
      run(clients[calls++ % clients.length] as RedisClient);
    return new PooledCommands({ ...mockRedis(), execute });
  }

  it('A pool is known by its method execute and its count of clients, not by one of both', () => {
    const [execute, totalClients] = [silence, 1];
    const found = [{ execute, totalClients }, { execute }, { totalClients }].map((parts) => {
      return isPool({ ...mockRedis(), ...parts });
    });
    expect(found).toEqual([true, false, false]);
  });

  it('A pool runs scripts by their text too, over a client that it has chosen, whose options are made once', async () => {
    const one = client();
    const commands = poolOf(one);
    await commands.eval('return 1', { keys: ['a'] });
    await commands.evalSha('sha1', { keys: ['b'] });
    expect([one.eval.mock.calls, one.evalSha.mock.calls]).toEqual([
      [['return 1', { keys: ['a'] }]],
      [['sha1', { keys: ['b'] }]],
    ]);
    expect(one.withCommandOptions).toHaveBeenCalledTimes(1);
  });

  it('A pool that has been given no command is not called disconnected', async () => {
    const commands = poolOf(client(false));
    expect(commands.isDisconnected).toBe(false);
    await commands.eval('return 1');
    expect(commands.isDisconnected).toBe(true);
  });

  it('A pool has a connection as long as one of its clients has one that it has not destroyed, and makes nothing anew', async () => {
    const [ready, cutOff, destroyed] = [client(), client(false), { ...client(), isOpen: false }];
    const commands = poolOf(cutOff, ready, destroyed, cutOff);
    for (let i = 0; i < 4; i++) await commands.eval('return 1');
    expect(commands.isDisconnected).toBe(false);
    ready.isOpen = false;
    expect(commands.isDisconnected).toBe(true);
    expect(cutOff.withCommandOptions).toHaveBeenCalledTimes(1);
  });

  it('A pool that has destroyed a client keeps nothing of it once another one comes', async () => {
    const isOpen = jest.fn(() => false);
    const gone = Object.defineProperty(client(), 'isOpen', { get: isOpen });
    const commands = poolOf(gone, client());
    await commands.eval('return 1');
    await commands.eval('return 1');
    isOpen.mockClear();
    expect(commands.isDisconnected).toBe(false);
    expect(isOpen).not.toHaveBeenCalled();
  });
});

describe('A cluster', () => {
  const nodes = [
    { host: 'a', port: 1 },
    { host: 'b', port: 2 },
  ];
  const parts = { slots: [{ master: nodes[0] }], masters: nodes, nodeClient: silence };

  it('A cluster is known by its slots, its masters, and a way to the client of each', () => {
    expect(isClusterClient({ ...mockRedis(), ...parts } as RedisClient)).toBe(true);
    for (const missing of Object.keys(parts)) {
      expect([missing, isClusterClient({ ...mockRedis(), ...parts, [missing]: undefined } as RedisClient)]).toEqual([
        missing,
        false,
      ]);
    }
  });

  it('A cluster has a master for a slot, by its slots, or by what an adapter says; each master has an address', () => {
    const cluster = { ...mockRedis(), ...parts } as RedisClient;
    const adapted = { ...cluster, slots: [], masterOf: (slot: number) => nodes[slot] } as RedisClient;
    expect([0, 1].map((slot) => addressOf(masterOf(cluster, slot)))).toEqual(['a:1', '']);
    expect([0, 1].map((slot) => addressOf(masterOf(adapted, slot)))).toEqual(['a:1', 'b:2']);
  });

  it('A cluster is scanned on each of its masters, page by page, and another client by itself', async () => {
    const asked: unknown[] = [];
    /** A server of two pages. */
    const server = (name: string) => ({
      scan: async (cursor: string, options: object) => {
        asked.push([name, cursor, options]);
        return { cursor: cursor === '0' ? Buffer.from('7') : 0, keys: [Buffer.from(`${name}:${cursor}`)] };
      },
    });
    const pagesOf = async (client: object, timeout = 1_000) => {
      const pages: string[][] = [];
      for await (const page of scan(client as RedisClient, 'orders:*', 50, timeout)) pages.push(page);
      return pages;
    };
    const nodeClient = ({ host }: { host: string }) => server(host);
    const slots = Array.from({ length: SLOTS }, (_, slot) => ({ master: nodes[slot % 2] }));
    const cluster = { ...mockRedis(), ...parts, ...server('cluster'), slots, nodeClient };
    const single = { ...mockRedis(), ...server('single') };
    expect(await pagesOf(cluster)).toEqual([['a:0'], ['a:7'], ['b:0'], ['b:7']]);
    expect(asked[1]).toEqual(['a', '7', { MATCH: 'orders:*', COUNT: 50 }]);
    for (const master of [undefined, { host: 'c', port: 3 }]) {
      const incomplete = { ...cluster, slots: slots.with(9, { master }) };
      await expect(pagesOf(incomplete, 10)).rejects.toThrow('No node serves slot 9 of the cluster');
      const listing = pagesOf(incomplete);
      incomplete.slots = slots;
      expect(await listing).toHaveLength(4);
    }
    expect(await pagesOf(single)).toEqual([['single:0'], ['single:7']]);
    // node-redis goes on trying to connect to a master that is away.
    const away = { ...cluster, nodeClient: () => new Promise(() => {}) };
    await expect(scan(away as RedisClient, '*', 50, 20).next()).rejects.toThrow('20 ms');
    expect([mockRedis(), single, { ...mockRedis(), ...parts } as RedisClient].map(canScan)).toEqual([
      false,
      true,
      true,
    ]);
  });
});
