/** @jest-config-loader esbuild-register */
import { join } from 'node:path';
import type { Config } from 'jest';
import config from '../jest.config';
import { LONG_TESTS } from './long-tests';

/** `npm run test:long`. */
const long: Config = {
  ...config,
  rootDir: join(__dirname, '..'),
  testMatch: LONG_TESTS,
  testPathIgnorePatterns: ['/node_modules/'],
  // Each is busy for longer than those of `npm test`.
  maxWorkers: process.env.REDIS_URL ? 1 : 3,
  testSequencer: '<rootDir>/scripts/longest-first.cjs',
};

export default long;
