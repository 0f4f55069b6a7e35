/** @jest-config-loader esbuild-register */
import { join } from 'node:path';
import type { Config } from 'jest';
import config from '../jest.config';

/**
 * `npm run test:fast`: an answer within half a minute. It covers the unit tests, the segmented lock without Redis, and on
 * a real Redis the contract of the type `fair` through a plain client, with the formats in Redis. It leaves out the other
 * types and kinds of client, faults, re-entrancy, several processes, and everything that takes long.
 */
process.env.TEST_LOCK_TYPES = 'fair';

const fast: Config = {
  ...config,
  rootDir: join(__dirname, '..'),
  testMatch: [
    '**/__tests__/unit/*.test.ts',
    '**/__tests__/segmented/{across,names,run}.test.ts',
    '**/__tests__/contract/{client,mixed-lock-types,wire-format}.test.ts',
  ],
};

export default fast;
