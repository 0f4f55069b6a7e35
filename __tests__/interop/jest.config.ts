/** @jest-config-loader esbuild-register */
import { join } from 'node:path';
import type { Config } from 'jest';
import base from '../../jest.config';

/** `npm run test:interop`: with the real Java libraries. Separate, because the other tests need no Java. */
const { transform, testEnvironment, maxWorkers, waitForUnhandledRejections, testMatch } = base;

const config: Config = {
  rootDir: join(__dirname, '..', '..'),
  roots: ['<rootDir>/__tests__/interop'],
  transform: transform as NonNullable<Config['transform']>,
  testEnvironment: testEnvironment as string,
  maxWorkers: maxWorkers as number,
  waitForUnhandledRejections: waitForUnhandledRejections as boolean,
  testMatch: testMatch as string[],
  testTimeout: 20_000,
  globalSetup: '<rootDir>/__tests__/interop/build-peer.ts',
  verbose: true,
};

export default config;
