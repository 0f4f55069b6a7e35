import { randomUUID } from 'node:crypto';
import { cpSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { createClient } from 'redis';
import { RedisLockRegistry } from '../../../../../lib';
import { freePort } from '../../../../../support/free-port';
import { type RedisServer, startRedis } from '../../../../../support/redis';
import { until } from '../../../../support/until';
import { cacheOf, runStep } from '../cache';
import { blockWith, Steps } from '../recipe';

/** ms; longer than any test takes: a waiter that is not notified fails the test. */
const NEVER = 600_000;

const FOLDER = cacheOf('go-recipe');
const PROGRAM = join(FOLDER, 'recipe');

const SOURCE = `package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/bsm/redislock"
	"github.com/redis/go-redis/v9"
)

func main() {
	ctx := context.Background()
	client := redis.NewClient(&redis.Options{Addr: "127.0.0.1:" + os.Args[1]})
	lock, err := redislock.Obtain(ctx, client, os.Args[2], time.Hour, nil)
	if err != nil {
		panic(err)
	}
	fmt.Println("held")
	fmt.Scanln()
${blockWith('go', 'client.Publish')}
	fmt.Scanln()
}
`;

let server: RedisServer;
let port: number;
let client: ReturnType<typeof createClient>;

beforeAll(async () => {
  rmSync(FOLDER, { recursive: true, force: true });
  mkdirSync(FOLDER, { recursive: true });
  for (const file of ['go.mod', 'go.sum']) cpSync(join(__dirname, file), join(FOLDER, file));
  writeFileSync(join(FOLDER, 'main.go'), SOURCE);
  runStep('go', ['build', '-o', PROGRAM, '.'], FOLDER);
  port = await freePort();
  server = await startRedis({ port });
  client = createClient({ socket: { host: '127.0.0.1', port } });
  await client.connect();
});

afterAll(async () => {
  client?.destroy();
  await server?.stop();
});

it('bsm/redislock with a message after its release wakes a waiter of pub-sub, which does not poll', async () => {
  const key = randomUUID();
  const registry = new RedisLockRegistry(client, {
    registryKey: 'orders',
    lockType: 'pub-sub',
    idleBetweenTries: NEVER,
  });
  const go = new Steps(PROGRAM, [String(port), `orders:${key}`]);
  try {
    expect(await go.next()).toBe('held');
    const entered = registry.obtain(key).lock();
    const channel = `orders-channel:orders:${key}`;
    await until(async () => (await client.pubSubNumSub(channel))[channel] === 1);
    go.goOn();
    await (await entered).unlock();
  } finally {
    await go.end();
    await registry.close();
  }
});
