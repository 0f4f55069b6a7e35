import { installEmbeddedRedis, startEmbeddedRedis } from '../../support/embedded-redis/start';
import { startRedis } from '../../support/redis';
import { findRedisBinary } from '../../support/redis-binary';

export interface Server {
  readonly url: string;
  /** Without the password. */
  readonly name: string;
  readonly isEmbedded?: boolean;
  stop(): Promise<void>;
}

/** The Redis that REDIS_URL names, else a private instance of an installed server, else an embedded one. */
export async function openServer(): Promise<Server> {
  const given = process.env.REDIS_URL;
  if (given) {
    const { protocol, host, pathname } = new URL(URL.canParse(given) ? given : 'redis:REDIS_URL');
    return { url: given, name: `Redis at ${protocol}//${host}${pathname}`, stop: async () => {} };
  }
  if (findRedisBinary()) {
    const { name, version, address, stop } = await startRedis({ port: true });
    const { host, port } = address as { host: string; port: number };
    return { url: `redis://${host}:${port}`, name: `a private ${name} ${version}`, stop };
  }
  installEmbeddedRedis();
  const { url, stop } = await startEmbeddedRedis();
  return { url, name: 'an embedded js-redis-server (REDIS_URL names a real one)', isEmbedded: true, stop };
}
