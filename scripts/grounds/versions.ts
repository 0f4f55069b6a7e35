/** What is run, and in which version. Each is the newest of its line that was to be had when this was written. */

/** Node, from the packages that have its binary. */
export const NODES = { 20: '20.20.2', 22: '22.23.5', 24: '24.21.0', 26: '26.10.0' } as const;
export const BUN = '1.4.5';
export const DENO = '2.9.6';
export const WORKERD = '1.20261117.1';

/** The packages of a client, by the name that its cells have. */
export const CLIENTS = {
  'redis-6': { redis: '6.3.1' },
  'redis-5': { redis: '5.12.1' },
  'ioredis-6': { ioredis: '6.0.0' },
  'ioredis-5': { ioredis: '5.11.1' },
  iovalkey: { iovalkey: '0.4.0' },
  'valkey-glide': { '@valkey/valkey-glide': '2.5.2' },
  bun: {},
  upstash: { '@upstash/redis': '1.39.0' },
} as const satisfies Record<string, Readonly<Record<string, string>>>;

export type ClientName = keyof typeof CLIENTS;

/** `ioredis 6.0.0`; Bun's own client has the version of Bun. */
export function titleOf(client: ClientName): string {
  const [[name, version] = ['Bun', `${BUN}'s own`]] = Object.entries(CLIENTS[client]);
  return `${name} ${version}`;
}
