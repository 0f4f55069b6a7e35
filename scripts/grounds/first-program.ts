import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { check, type Report } from '../../support/grounds/cell';
import { blockOf, promised, runProgram, withAddress } from './program';
import type { User } from './suite';

/** Of which page each client has its first program, and which words it has that no other program of the page has. */
const FIRST: Readonly<Record<string, readonly [page: string, words: string]>> = {
  redis: ['README.md', "from 'redis';"],
  ioredis: ['docs/get-started.md', "from 'ioredis';"],
  iovalkey: ['docs/get-started.md', "from 'ioredis';"],
  'valkey-glide': ['docs/get-started.md', "from '@valkey/valkey-glide';"],
  bun: ['docs/get-started.md', "from 'bun';"],
  upstash: ['docs/redis.md', "from '@upstash/redis';"],
};

/** ms. */
const LIMIT = 30_000;

function programOf(client: string): string {
  const [page = '', words = ''] = FIRST[client.replace(/-\d+$/, '')] ?? [];
  const code = blockOf(page, words);
  return client === 'iovalkey' ? code.replace("from 'ioredis';", "from 'iovalkey';") : code;
}

/** The first program of README, or that of another page for the client, as it stands there but for the address. */
export async function firstProgram({ folder, command, client, server, upstash }: User, report: Report): Promise<void> {
  await check(report, 'the first program of the pages prints what it says', async () => {
    const code = programOf(client);
    await writeFile(join(folder, 'first.mjs'), withAddress(code, server));
    const env = upstash && { UPSTASH_REDIS_REST_URL: upstash.url, UPSTASH_REDIS_REST_TOKEN: upstash.token };
    const { stdout, stderr } = await runProgram([...command, 'first.mjs'], folder, env, LIMIT);
    assert.deepEqual([stdout.trimEnd().split('\n'), stderr], [promised(code), '']);
  });
}
