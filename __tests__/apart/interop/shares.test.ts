import { afterAll, beforeAll, it } from '@jest/globals';
import { freePort } from '../../../support/free-port';
import { type RedisServer, startRedis } from '../../../support/redis';
import { holdAll, POLLING, SATURATED, type Scene } from './competition';
import { RIVALS } from './kinds';

/** With one caller, a lock is free for a moment between two turns, and there is no hand-over that could be left out. */
const SINGLE: Scene = { ...SATURATED, node: 1, java: 1 };

const COMPETITIONS = [
  ...RIVALS.map((kind) => ({ kind, scene: SATURATED })),
  ...RIVALS.filter(({ rival }) => POLLING.includes(rival)).map((kind) => ({ kind, scene: SINGLE })),
];

/** Competitions at a time: their callers sleep most of the time. */
const AT_A_TIME = 3;

let server: RedisServer;
let port: number;

beforeAll(async () => {
  port = await freePort();
  server = await startRedis({ port });
});

afterAll(() => server.stop());

it('Both sides have their share, and neither is without a turn for long', async () => {
  await holdAll(COMPETITIONS, port, AT_A_TIME);
}, 900_000);
