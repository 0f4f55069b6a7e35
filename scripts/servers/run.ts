import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Options } from './options';
import type { JestReport } from './results';
import type { Server } from './servers';

const CONFIG = join(__dirname, '..', '..', '__tests__', 'servers', 'jest.config.ts');

/** Runs the contract suite on one server. */
export async function runContract({ binary }: Server, { types, clients }: Options): Promise<JestReport> {
  const dir = await mkdtemp(join(tmpdir(), 'servers-'));
  const file = join(dir, 'report.json');
  const jest = spawn(
    process.execPath,
    [require.resolve('jest/bin/jest'), '--config', CONFIG, '--json', '--outputFile', file, ...clients],
    {
      stdio: ['ignore', 'ignore', 'pipe'],
      env: { ...process.env, REDIS_URL: '', REDIS_SERVER_BIN: binary, TEST_LOCK_TYPES: types.join() },
    },
  );
  const log: Buffer[] = [];
  jest.stderr.on('data', (chunk: Buffer) => log.push(chunk));
  await once(jest, 'close');
  try {
    return JSON.parse(await readFile(file, 'utf8')) as JestReport;
  } catch {
    throw new Error(`Jest wrote no report:\n${Buffer.concat(log).toString()}`);
  } finally {
    await rm(dir, { recursive: true, force: true });
  }
}
