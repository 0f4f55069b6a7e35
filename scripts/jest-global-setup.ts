import { mkdirSync, mkdtempSync } from 'node:fs';
import { join } from 'node:path';
import type { Config } from '@jest/types';
import { startTestServers, type TestServers } from './test-servers';

declare global {
  var testServers: TestServers | undefined;
}

const CACHE = join(__dirname, '../node_modules/.cache');

export default async function setup({ maxWorkers }: Config.GlobalConfig): Promise<void> {
  globalThis.testServers = await startTestServers(maxWorkers);
  Object.assign(process.env, globalThis.testServers.environment);
  mkdirSync(CACHE, { recursive: true });
  // What the files of one run share. Inside the project, so that programs there find its packages.
  process.env.TEST_RUN = mkdtempSync(join(CACHE, 'test-run-'));
}
