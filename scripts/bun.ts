import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { startRedis } from '../support/redis';
import { runMain } from '../support/run-main';

/**
 * `npm run test:bun`: the contract suite and the tests of the adapter under Bun, on a server of its own. Not part of
 * `npm test`: Bun is no development dependency, since it has 100 MB. `TEST_LOCK_TYPES=spin,fair`: only these types.
 */

const TESTS = join(__dirname, '..', '__tests__', 'clients', 'bun');

const HOW =
  'Bun is missing. Put it on the PATH, or name it: npm install --prefix DIR bun, and BUN_BIN=DIR/node_modules/.bin/bun';

/** ms, for one test on a busy machine. */
const LIMIT = 60_000;

async function main(): Promise<number> {
  const server = await startRedis({ port: true });
  const { host, port } = server.address as { host: string; port: number };
  const files = ['contract.bun.ts', 'messages.bun.ts', 'fake-timers.bun.ts'].map((file) => join(TESTS, file));
  const args = ['test', '--preload', join(TESTS, 'preload.cjs'), '--timeout', String(LIMIT), ...files];
  const env = { ...process.env, TEST_REDIS_URL: `redis://${host}:${port}` };
  const tests = spawn(process.env.BUN_BIN ?? 'bun', args, { stdio: 'inherit', env });
  try {
    const [code] = await once(tests, 'close');
    return code ?? 1;
  } catch (cause) {
    throw new Error(HOW, { cause }); // there is no such program
  } finally {
    await server.stop();
  }
}

void runMain(main);
