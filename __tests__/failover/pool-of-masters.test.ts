import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { describePrivate } from '../support/private-redis';
import { type SentinelServers, startSentinel } from '../support/sentinel';
import { printTable } from './table';

/** Issued in one turn of the event loop. */
const COMMANDS = 20;

/** ms */
const WITHIN = 5_000;

describePrivate('a sentinel client of node-redis with several connections to the master', () => {
  let sentinel: SentinelServers;
  const rows: number[][] = [];

  beforeAll(async () => {
    sentinel = await startSentinel();
  });

  afterAll(async () => {
    await sentinel.stop();
    printTable(['masterPoolSize', 'commands in one turn', `settled within ${WITHIN} ms`], rows);
  });

  // With 2 or more it is a fault of node-redis, which may be mended: the table shows it.
  it.each([1, 2, 4])('masterPoolSize %d: commands that settle', async (masterPoolSize) => {
    const client = await sentinel.connect({}, masterPoolSize);
    let settled = 0;
    const commands = Array.from({ length: COMMANDS }, (_, i) => client.get(`key ${i}`).then(() => settled++));
    const giveUp = new Promise((resolve) => setTimeout(resolve, WITHIN));
    await Promise.race([Promise.all(commands), giveUp]);
    rows.push([masterPoolSize, COMMANDS, settled]);
    if (masterPoolSize === 1) expect(settled).toBe(COMMANDS);
    for (const command of commands) command.catch(() => undefined);
    await client.destroy();
  });
});
