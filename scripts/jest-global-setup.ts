import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Config } from '@jest/types';
import { startTestServers, type TestServers } from './test-servers';

declare global {
  var testServers: TestServers | undefined;
}

export default async function setup({ maxWorkers }: Config.GlobalConfig): Promise<void> {
  process.env.TEST_REJECTIONS = join(mkdtempSync(join(tmpdir(), 'jest-')), 'rejections');
  globalThis.testServers = await startTestServers(maxWorkers);
  Object.assign(process.env, globalThis.testServers.environment);
}
