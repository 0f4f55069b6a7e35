/** @jest-config-loader esbuild-register */
import type { Config } from 'jest';
import { CLIENTS } from './scripts/jest-clients';
import { LONG_TESTS } from './scripts/long-tests';

const config: Config = {
  roots: ['<rootDir>/__tests__'],
  testMatch: ['**/*.test.ts'],
  // `npm run test:interop`, which needs Java; `npm run test:long`, `test:failover` and `test:servers`, which take long;
  // `test:examples`, which installs packages.
  testPathIgnorePatterns: [
    '/node_modules/',
    '<rootDir>/__tests__/apart/interop/',
    '<rootDir>/__tests__/apart/failover/',
    '<rootDir>/__tests__/apart/servers/',
    '<rootDir>/__tests__/package/examples/',
    ...LONG_TESTS,
  ],
  testEnvironment: '<rootDir>/scripts/jest-environment.ts',
  setupFilesAfterEnv: ['<rootDir>/scripts/jest-each-file.ts'],
  transform: {
    '^.+\\.ts$': [
      '@swc/jest',
      {
        jsc: { target: 'es2022', parser: { syntax: 'typescript', explicitResourceManagement: true } },
        module: { type: 'commonjs' },
      },
    ],
  },
  moduleNameMapper: CLIENTS,
  // Most tests wait for most of their time. Each worker has its own servers, except with REDIS_URL.
  maxWorkers: process.env.REDIS_URL ? 1 : 4,
  waitForUnhandledRejections: true,
  // Tests bound their own waits; this limit is for a busy machine.
  testTimeout: 180_000,
  // A process with a large heap may take longer than the 500 ms by default to end. One that leaves something open is still
  // reported.
  workerGracefulExitTimeout: 5_000,
  globalSetup: '<rootDir>/scripts/jest-global-setup.ts',
  globalTeardown: '<rootDir>/scripts/jest-global-teardown.ts',
  collectCoverageFrom: ['lib/**/*.ts'],
  coverageProvider: 'v8',
};

export default config;
