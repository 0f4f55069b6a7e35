/** @jest-config-loader esbuild-register */
import { join } from 'node:path';
import type { Config } from 'jest';
import base from '../../../jest.config';

/** `npm run test:interop`: with the real Java libraries. Separate, because the other tests need no Java. */
const { globalTeardown: _teardown, moduleNameMapper: _clients, ...rest } = base;

const config: Config = {
  ...rest,
  rootDir: join(__dirname, '..', '..', '..'),
  roots: ['<rootDir>/__tests__/apart/interop'],
  testPathIgnorePatterns: ['/node_modules/', '<rootDir>/__tests__/apart/interop/languages/'],
  globalSetup: '<rootDir>/__tests__/apart/interop/build-peer.ts',
  verbose: true,
};

export default config;
