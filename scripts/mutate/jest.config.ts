/** @jest-config-loader esbuild-register */
import { join } from 'node:path';
import type { Config } from 'jest';
import config from '../../jest.config';

/** The folders of `__tests__` that judge a mutant: those that need no waiting, unless `npm run mutate` was given others. */
const folders = (process.env.MUTATE_TESTS ?? 'unit').split(',');

const mutate: Config = {
  ...config,
  rootDir: join(__dirname, '../..'),
  testMatch: folders.map((folder) => `**/__tests__/${folder}/**/*.test.ts`),
  runner: join(__dirname, 'runner.ts'),
  testEnvironment: join(__dirname, 'environment.ts'),
  // A test that fails finds the mutant, also when the machine stood still.
  setupFilesAfterEnv: [],
  // A test that a mutant keeps from ending is ended here, long before Stryker ends its process.
  testTimeout: 15_000,
};

export default mutate;
