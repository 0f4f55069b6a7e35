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
  // Many tests measure time, and all share two servers: side by side they would disturb each other.
  maxWorkers: 1,
  waitForUnhandledRejections: true,
  globalSetup: '<rootDir>/scripts/jest-global-setup.ts',
  globalTeardown: '<rootDir>/scripts/jest-global-teardown.ts',
  reporters: ['default', '<rootDir>/scripts/jest-reporter.cjs'],
  collectCoverageFrom: ['lib/**/*.ts'],
  coverageProvider: 'v8',
};

export default config;
