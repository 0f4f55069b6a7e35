import { existsSync, readFileSync, rmSync } from 'node:fs';
import { dirname } from 'node:path';

export default async function teardown(): Promise<void> {
  await globalThis.testServers?.stop();
  const rejections = process.env.TEST_REJECTIONS ?? '';
  const found = existsSync(rejections) ? readFileSync(rejections, 'utf8') : '';
  rmSync(dirname(rejections), { recursive: true, force: true });
  if (found !== '') throw new Error(`Unhandled rejections after the tests of a file:\n${found}`);
}
