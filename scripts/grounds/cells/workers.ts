import assert from 'node:assert/strict';
import { createClient } from 'redis';
import { type Cell, check, type Report } from '../../../support/grounds/cell';
import { startUpstashServer, upstashOptions } from '../../../support/upstash-server';
import { startWorkerd } from '../../../support/workerd/start';
import { allOverTcp, bundleWorker, HTTP_WORKER, OVER_HTTP, tcpWorker } from '../../../support/workerd/workers';
import { installUser } from '../folder';
import { ownServer, Server } from '../server';
import { CLIENTS, titleOf, WORKERD } from '../versions';

/** Several requests to one worker, whose process stays: each makes its clients anew. */
const REQUESTS = 3;

async function ask(report: Report, worker: string, env: Record<string, string>, expected: unknown): Promise<void> {
  const packages = { ...CLIENTS['redis-6'], ...CLIENTS['ioredis-6'], ...CLIENTS.upstash };
  const folder = await installUser('worker', packages);
  const workerd = await startWorkerd(await bundleWorker(worker, folder), env);
  try {
    for (let request = 1; request <= REQUESTS; request++)
      await check(report, `request ${request}: exclusion, renewal, waiting, handing over`, async () => {
        const response = await fetch(workerd.url, { signal: AbortSignal.timeout(30_000) });
        assert.deepEqual(await response.json(), expected);
      });
  } finally {
    await workerd.stop();
  }
}

async function overTcp(report: Report): Promise<undefined> {
  const server = await Server.start(ownServer());
  try {
    await ask(report, tcpWorker('ioredis'), { HOST: '127.0.0.1', PORT: String(server.port) }, allOverTcp());
  } finally {
    await server.stop();
  }
}

async function overHttp(report: Report): Promise<undefined> {
  const server = await Server.start(ownServer());
  const redis = await createClient({ url: server.url, RESP: 2 })
    .on('error', () => undefined)
    .connect();
  const http = await startUpstashServer(redis);
  try {
    const { url, token } = upstashOptions(http);
    await ask(report, HTTP_WORKER, { UPSTASH_REDIS_REST_URL: url, UPSTASH_REDIS_REST_TOKEN: token }, OVER_HTTP);
  } finally {
    http.stop();
    redis.destroy();
    await server.stop();
  }
}

const each = { ground: 'worker', title: `workerd ${WORKERD}`, limit: 120_000 } as const;

/** Cloudflare's runtime, with `nodejs_compat`, bundled by esbuild. */
export const workerCells: readonly Cell[] = [
  { ...each, name: 'workerd/tcp', through: `${titleOf('redis-6')}, ${titleOf('ioredis-6')} over TCP`, run: overTcp },
  { ...each, name: 'workerd/http', through: `${titleOf('upstash')} over HTTP`, run: overHttp },
];
