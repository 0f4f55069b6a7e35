import { installEmbeddedRedis, startEmbeddedRedis } from '../../support/embedded-redis/start';
import { startRedis } from '../../support/redis';
import { findRedisBinary } from '../../support/redis-binary';
import { connect, type Redis } from './connection';

/** The Redis server of a demo, and a connection to it. */
export interface DemoRedis {
  readonly url: string;
  readonly name: string; // for display, without the password
  readonly isEmbedded: boolean;
  readonly client: Redis;
  stop(): Promise<void>;
}

export class RedisUnreachableError extends Error {}

type Server = Omit<DemoRedis, 'client'>;

/** The Redis that REDIS_URL names, else a private instance of an installed server, else an embedded one. */
export async function openRedis(): Promise<DemoRedis> {
  const given = process.env.REDIS_URL;
  const server = given ? named(given) : findRedisBinary() ? await startReal() : await startEmbedded();
  try {
    const client = await connect(server.url);
    const stop = async () => {
      client.destroy();
      await server.stop();
    };
    return { ...server, client, stop };
  } catch (error) {
    await server.stop();
    throw new RedisUnreachableError(`Cannot reach ${server.name}: ${reason(error)}`);
  }
}

function named(url: string): Server {
  return { url, name: `Redis at ${withoutPassword(url)}`, isEmbedded: false, stop: async () => {} };
}

async function startReal(): Promise<Server> {
  const { name, version, address, stop } = await startRedis({ port: true });
  const { host, port } = address as { host: string; port: number };
  return { url: `redis://${host}:${port}`, name: `a private ${name} ${version}`, isEmbedded: false, stop };
}

async function startEmbedded(): Promise<Server> {
  installEmbeddedRedis();
  const { url, stop } = await startEmbeddedRedis();
  return { url, name: 'an embedded js-redis-server (REDIS_URL names a real one)', isEmbedded: true, stop };
}

function withoutPassword(url: string): string {
  if (!URL.canParse(url)) return 'REDIS_URL';
  const { protocol, host, pathname } = new URL(url);
  return `${protocol}//${host}${pathname}`;
}

/** Node reports a refused localhost as an AggregateError with a code and no message. */
function reason(error: unknown): string {
  const { message, code } = error as NodeJS.ErrnoException;
  return message || code || String(error);
}
