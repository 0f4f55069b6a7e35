/** @jest-config-loader esbuild-register */
import { join } from 'node:path';
import type { Config } from 'jest';
import base from '../../../../jest.config';

/** `npm run test:interop -- --languages`: with real lock libraries of other languages, and others of Node. */
const { globalTeardown: _teardown, moduleNameMapper: _clients, ...rest } = base;

const config: Config = {
  ...rest,
  rootDir: join(__dirname, '../../../..'),
  roots: ['<rootDir>/__tests__/apart/interop/languages'],
  testPathIgnorePatterns: ['/node_modules/'],
  globalSetup: '<rootDir>/__tests__/apart/interop/languages/prepare.ts',
  verbose: true,
};

export default config;
