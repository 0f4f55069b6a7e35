import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from '@jest/globals';
import { ROOT } from './pages';

const read = (page: string) => readFileSync(join(ROOT, page), 'utf8');

/** The line of README that names the clients and servers. */
const line = /It works with .*compatibility\.md\)/.exec(read('README.md'))?.[0] ?? '';

const matrix = read('docs/compatibility.md')
  .split('\n')
  .slice(-40)
  .filter((row) => row.startsWith('|'));
const cells = (row: string) =>
  row
    .split('|')
    .slice(1, -1)
    .map((cell) => cell.trim());

it('README names the clients that were run, and no other', () => {
  const names = (text: string) => [...new Set(text.match(/\b(?:redis|ioredis|iovalkey|valkey-glide)\b/g))].sort();
  const run = matrix.slice(2).map((row) => cells(row)[2] ?? '');
  expect(names(line.replace('node-redis', ''))).toEqual(names(run.join(' ')));
});

it('README names the servers that were run, and nothing failed on them', () => {
  const servers = matrix.slice(2).map((row) => cells(row)[0] ?? '');
  const versions = (kind: string) =>
    servers.flatMap((server) => (server.startsWith(kind) ? [Number(/ (\d+\.\d+)/.exec(server)?.[1])] : []));
  expect(line).toContain(`Redis ${Math.min(...versions('redis'))} to ${Math.floor(Math.max(...versions('redis')))}`);
  const valkey = [...new Set(versions('valkey').map(Math.floor))].sort();
  expect(line).toContain(`Valkey ${valkey.join(' and ')}`);
  expect(matrix.join('\n')).not.toContain('failed');
});
