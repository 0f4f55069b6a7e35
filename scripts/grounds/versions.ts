import manifest from '../../package.json';
import embedded from '../../support/embedded-redis/package.json';
import workerd from '../../support/workerd/package.json';

/**
 * What is run, and in which version: of what this project installs anyway, that version; of all else, the newest of its
 * line when this was written.
 */

/** `redis5` is `npm:redis@5.12.1`. */
const ofProject = (name: keyof typeof manifest.devDependencies): string =>
  manifest.devDependencies[name].replace(/^npm:.*@/, '');

/** Node, from the packages that have its binary. */
export const NODES = { 20: '20.20.2', 22: '22.23.5', 24: '24.21.0', 26: '26.10.0' } as const;
export const BUN = '1.4.5';
export const DENO = '2.9.6';
export const WORKERD = workerd.dependencies.workerd;

/** The packages of a client, by the name that its cells have. */
export const CLIENTS = {
  'redis-6': { redis: ofProject('redis') },
  'redis-5': { redis: ofProject('redis5') },
  'ioredis-6': { ioredis: ofProject('ioredis6') },
  'ioredis-5': { ioredis: ofProject('ioredis') },
  iovalkey: { iovalkey: ofProject('iovalkey') },
  'valkey-glide': { '@valkey/valkey-glide': ofProject('@valkey/valkey-glide') },
  bun: {},
  upstash: { '@upstash/redis': ofProject('@upstash/redis') },
};

export type ClientName = keyof typeof CLIENTS;

/** `ioredis 6.0.0`; Bun's own client has the version of Bun. */
export function titleOf(client: ClientName): string {
  const [[name, version] = ['Bun', `${BUN}'s own`]] = Object.entries(CLIENTS[client]);
  return `${name} ${version}`;
}

export const JS_REDIS_SERVER = embedded.dependencies['js-redis-server'];
export const MINIREDIS = '2.40.0';

export const ESBUILD = ofProject('esbuild');
export const ROLLDOWN = '1.3.3';
export const WEBPACK = '5.113.0';
export const RSPACK = '2.3.3';

export const TYPESCRIPTS = ['5.2.2', '5.5.4', '5.9.3', '6.0.3', ofProject('typescript')];
export const NODE_TYPES = ofProject('@types/node');

export const JEST = ofProject('jest');
export const VITESTS = [ofProject('vitest'), '5.1.2'];

/** NestJS, and its package for tests, which has versions of its own. */
export const NESTS = {
  11: { nest: ofProject('@nestjs/common'), testing: ofProject('@nestjs/testing') },
  12: { nest: '12.5.1', testing: '12.1.1' },
};
export const RXJS = ofProject('rxjs');
export const REFLECT_METADATA = ofProject('reflect-metadata');
export const OPENTELEMETRY = ofProject('@opentelemetry/api');
export const BULLMQ = ofProject('bullmq');
export const NODE_CRON = ofProject('node-cron');
export const CRONER = ofProject('croner');
export const FASTIFY = ofProject('fastify');
export const FASTIFY_PLUGIN = '5.0.1';
export const NEXT = '16.4.6';
export const REACT = '19.3.1';
