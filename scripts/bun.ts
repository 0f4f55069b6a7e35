import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { startRedis } from '../support/redis';

/**
 * `npm run test:bun`: the contract suite and the tests of the adapter under Bun, on a server of its own. Not part of
 * `npm test`: Bun is no development dependency, since it has 100 MB. `TEST_LOCK_TYPES=spin,fair`: only these types.
 */

const TESTS = join(__dirname, '..', '__tests__', 'bun');

const HOW =
  'Bun is missing. Put it on the PATH, or name it: npm install --prefix DIR bun, and BUN_BIN=DIR/node_modules/.bin/bun';

/** ms, for one test on a busy machine. */
const LIMIT = 60_000;

function findBun(): string | undefined {
  const { BUN_BIN, PATH = '' } = process.env;
  if (BUN_BIN !== undefined) return BUN_BIN;
  return PATH.split(delimiter)
    .map((folder) => join(folder, 'bun'))
    .find(existsSync);
}

async function main(): Promise<void> {
  const bun = findBun();
  if (bun === undefined) throw new Error(HOW);
  const server = await startRedis({ port: true });
  const { host, port } = server.address as { host: string; port: number };
  const files = ['contract.bun.ts', 'messages.bun.ts', 'fake-timers.bun.ts'].map((file) => join(TESTS, file));
  const args = ['test', '--preload', join(TESTS, 'preload.cjs'), '--timeout', String(LIMIT), ...files];
  const env = { ...process.env, TEST_REDIS_URL: `redis://${host}:${port}` };
  const tests = spawn(bun, args, { stdio: 'inherit', env });
  tests.once('error', (error) => console.error(error));
  process.exitCode = await new Promise<number>((resolve) => tests.once('close', (code) => resolve(code ?? 1)));
  await server.stop();
}

main().catch((error: Error) => {
  console.error(error.message);
  process.exitCode = 1;
});
