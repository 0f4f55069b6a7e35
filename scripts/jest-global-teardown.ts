import { existsSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';

export default async function teardown(): Promise<void> {
  await Promise.all(globalThis.testServers?.map((server) => server.stop()) ?? []);
  const { TEST_AGAINST, TEST_LEFT_OUT, TEST_RUN = '' } = process.env;
  console.log(`against: ${TEST_AGAINST}`);
  if (TEST_LEFT_OUT) console.log(`left out: ${TEST_LEFT_OUT}`);
  const rejections = join(TEST_RUN, 'rejections');
  const found = existsSync(rejections) ? readFileSync(rejections, 'utf8') : '';
  rmSync(TEST_RUN, { recursive: true, force: true });
  if (found !== '') throw new Error(`Unhandled rejections after the tests of a file:\n${found}`);
}
