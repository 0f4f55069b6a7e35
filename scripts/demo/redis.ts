import { startEmbeddedRedis } from '../embedded-redis';
import { connect, type Redis } from './connection';

/** The Redis of the demo, and a connection to it. */
export interface DemoRedis {
  readonly url: string;
  readonly name: string; // for people: without the password
  readonly client: Redis;
  stop(): Promise<void>;
}

export class RedisUnreachableError extends Error {}

/** The Redis that REDIS_URL names, or else an embedded one. */
export async function openRedis(): Promise<DemoRedis> {
  const given = process.env.REDIS_URL;
  const embedded = given ? undefined : await startEmbeddedRedis();
  const url = embedded?.url ?? given ?? '';
  const name = given
    ? `Redis at ${withoutPassword(given)}`
    : 'an embedded js-redis-server (REDIS_URL names a real one)';
  try {
    const client = await connect(url);
    const stop = async () => {
      client.destroy();
      await embedded?.stop();
    };
    return { url, name, client, stop };
  } catch (error) {
    await embedded?.stop();
    throw new RedisUnreachableError(`Cannot reach ${name}: ${reason(error)}`);
  }
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
