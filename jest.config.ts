/** @jest-config-loader esbuild-register */
import type { Config } from 'jest';

const config: Config = {
  roots: ['<rootDir>/__tests__'],
  testMatch: ['**/*.test.ts'],
  // They need Java: `npm run test:interop`.
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
  // Many tests measure time, and most of it is waiting: two side by side, each with servers of its own, are as quick as
  // they may be. The one Redis that REDIS_URL names is not shared.
  maxWorkers: process.env.REDIS_URL ? 1 : 2,
  waitForUnhandledRejections: true,
  // Each test bounds what it waits for by itself; this is for a machine that is busy with other things.
  testTimeout: 30_000,
  globalSetup: '<rootDir>/scripts/jest-global-setup.ts',
  globalTeardown: '<rootDir>/scripts/jest-global-teardown.ts',
  reporters: ['default', '<rootDir>/scripts/jest-reporter.cjs'],
  collectCoverageFrom: ['lib/**/*.ts'],
  coverageProvider: 'v8',
};

export default config;
