/** @jest-config-loader esbuild-register */
import { join } from 'node:path';
import type { Config } from 'jest';
import config from '../../jest.config';

/** `npm run test:examples`. It installs what each example needs, from the registry. */
const examples: Config = {
  ...config,
  rootDir: join(__dirname, '../..'),
  testMatch: ['<rootDir>/__tests__/examples/*.test.ts'],
  testPathIgnorePatterns: ['/node_modules/'],
  testTimeout: 600_000,
};

export default examples;
