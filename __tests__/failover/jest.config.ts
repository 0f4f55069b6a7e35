/** @jest-config-loader esbuild-register */
import { join } from 'node:path';
import type { Config } from 'jest';
import base from '../../jest.config';

/**
 * `npm run test:failover`: real failovers under load, with a table of what was measured. Separate, because they take
 * minutes and need the machine for themselves.
 */
const config: Config = {
  ...base,
  rootDir: join(__dirname, '..', '..'),
  roots: ['<rootDir>/__tests__/failover'],
  testPathIgnorePatterns: ['/node_modules/'],
  maxWorkers: 1,
  testTimeout: 180_000,
};

export default config;
