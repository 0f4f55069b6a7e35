// How a user opens each client: what the registry gets, a way to send any command, and the end of it.
const openers = {
  async redis(url) {
    const { createClient } = await import('redis');
    const client = await createClient({ url }).on('error', () => undefined).connect();
    return { client, send: (...words) => client.sendCommand(words), end: () => client.destroy() };
  },
  async ioredis(url) {
    return ofIoredis((await import('ioredis')).Redis, url);
  },
  async iovalkey(url) {
    return ofIoredis((await import('iovalkey')).Redis, url);
  },
  async 'valkey-glide'(url) {
    const { GlideClient, Logger } = await import('@valkey/valkey-glide');
    const { fromGlide } = await import('redis-lock-registry/valkey-glide');
    Logger.setLoggerConfig('off');
    const { hostname: host, port } = new URL(url);
    // Its time-out of 250 ms by default is short on a busy machine.
    const client = await GlideClient.createClient({ addresses: [{ host, port: Number(port) }], requestTimeout: 2_000 });
    return { client: fromGlide(client), send: (...words) => client.customCommand(words), end: () => client.close() };
  },
  async bun(url) {
    const { RedisClient } = await import('bun');
    const { fromBun } = await import('redis-lock-registry/bun');
    const client = new RedisClient(url);
    const send = (name, ...args) => client.send(name, args);
    return { client: fromBun(client), send, end: () => client.close() };
  },
  async upstash() {
    const { Redis } = await import('@upstash/redis');
    const { fromUpstash } = await import('redis-lock-registry/upstash');
    const redis = new Redis({ ...JSON.parse(process.env.GROUNDS).upstash, enableTelemetry: false });
    const send = (name, ...args) => redis[name.toLowerCase()](...args);
    return { client: fromUpstash(redis), send, end: () => undefined };
  },
};
async function ofIoredis(Redis, url) {
  const { fromIoredis } = await import('redis-lock-registry/ioredis');
  const redis = new Redis(url).on('error', () => undefined);
  return { client: fromIoredis(redis), send: (...words) => redis.call(...words), end: () => redis.disconnect() };
}

/** `redis-6` is `redis`, in the version that is installed here. */
export const open = (name, url) => openers[name.replace(/-\d+$/, '')](url);
