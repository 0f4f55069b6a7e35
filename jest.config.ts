/** @jest-config-loader esbuild-register */
import type { Config } from 'jest';

const config: Config = {
  roots: ['<rootDir>/__tests__'],
  testMatch: ['**/*.test.ts'],
  // These need Java: `npm run test:interop`.
  testPathIgnorePatterns: ['/node_modules/', '<rootDir>/__tests__/interop/'],
  testEnvironment: '<rootDir>/scripts/jest-environment.ts',
  transform: {
    '^.+\\.ts$': [
      '@swc/jest',
      {
        jsc: { target: 'es2022', parser: { syntax: 'typescript', explicitResourceManagement: true } },
        module: { type: 'commonjs' },
      },
    ],
  },
  // Two workers: more would disturb the tests that measure time. Each has its own servers, except with REDIS_URL.
  maxWorkers: process.env.REDIS_URL ? 1 : 2,
  waitForUnhandledRejections: true,
  // Tests bound their own waits; this limit is for a busy machine.
  testTimeout: 30_000,
  globalSetup: '<rootDir>/scripts/jest-global-setup.ts',
  globalTeardown: '<rootDir>/scripts/jest-global-teardown.ts',
  reporters: ['default', '<rootDir>/scripts/jest-reporter.cjs'],
  collectCoverageFrom: ['lib/**/*.ts'],
  coverageProvider: 'v8',
};

export default config;
