/** @jest-config-loader esbuild-register */
import { join } from 'node:path';
import type { Config } from 'jest';
import base from '../../../jest.config';

/**
 * The contract suite through every kind of client, on the server that REDIS_SERVER_BIN names, and what servers differ in.
 * `npm run test:servers -- --contract` runs it for one server after the other. Most of its time is waiting, so there are more workers than cores.
 */
const config: Config = {
  ...base,
  rootDir: join(__dirname, '..', '..', '..'),
  testMatch: [
    '**/__tests__/apart/servers/*.test.ts',
    '**/__tests__/contract/{client,cluster,keys-without-expiry,pool,redis-5,sentinel}.test.ts',
  ],
  testPathIgnorePatterns: ['/node_modules/'],
  maxWorkers: 6,
};

export default config;
