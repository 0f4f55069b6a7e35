import { createClient } from 'redis';
import type { Cell, Report } from '../../../support/grounds/cell';
import { startUpstashServer, upstashOptions } from '../../../support/upstash-server';
import { firstProgram } from '../first-program';
import { installUser } from '../folder';
import { RUNTIMES, type Runtime } from '../runtimes';
import { ownServer, Server, type ServerCommand } from '../server';
import { runSuite, type User } from '../suite';
import { CLIENTS, type ClientName, titleOf } from '../versions';

/** ms, for a whole suite on a busy machine. */
export const LIMIT = 300_000;

/** One pair of a runtime and a client on a server: the first program of the pages, and the suite. */
export async function runPair(
  runtime: Runtime,
  client: ClientName,
  report: Report,
  command: ServerCommand,
): Promise<void> {
  const words = await runtime.command(client);
  const folder = await installUser(client, CLIENTS[client]);
  const server = await Server.start(command);
  const ends = [() => server.stop()];
  try {
    let upstash: User['upstash'];
    if (client === 'upstash') {
      const redis = await createClient({ url: server.url, RESP: 2 })
        .on('error', () => undefined)
        .connect();
      const http = await startUpstashServer(redis);
      const { url, token } = upstashOptions(http);
      upstash = { url, token };
      ends.unshift(async () => {
        http.stop();
        redis.destroy();
      });
    }
    const types = client === 'upstash' ? ['spin'] : ['pub-sub', 'fair'];
    const user = { folder, command: words, client, types, server, ...(upstash && { upstash }) };
    await firstProgram(user, report);
    await runSuite(user, report);
  } finally {
    for (const end of ends) await end();
  }
}

/** Bun's client is part of Bun; the restricted Node runs with one client of each kind. */
const isPair = (runtime: Runtime, client: ClientName) =>
  client === 'bun'
    ? runtime.name === 'bun'
    : runtime.name !== 'node-permission' || ['redis-6', 'ioredis-6', 'valkey-glide'].includes(client);

/** Each runtime with each client, on the server that this machine has. */
export const runtimeCells: readonly Cell[] = RUNTIMES.flatMap((runtime) =>
  (Object.keys(CLIENTS) as ClientName[])
    .filter((client) => isPair(runtime, client))
    .map((client) => ({
      name: `${runtime.name}/${client}`,
      ground: 'runtime' as const,
      title: runtime.title,
      through: titleOf(client),
      limit: LIMIT,
      run: async (report) => {
        await runPair(runtime, client, report, ownServer());
        return undefined;
      },
    })),
);
