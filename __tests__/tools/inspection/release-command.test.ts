import { execFileSync } from 'node:child_process';
import { expect, it } from '@jest/globals';
import { readArguments } from '../../../lib/tools/cli/arguments';
import { releaseCommand } from '../../../lib/tools/inspection/release-command';

it.each([
  ['order:42', 'orders'],
  ['order:42', ''],
  ['a b', "it's"],
  ['$(exit 3)`exit 3`$HOME', '"'],
  ['-key', 'orders'],
  ['key', '-registry'],
  ["line\nbreak\x1b[31m\\'", 'a\tb'],
  ['\u{1f511} \u202e', 'é'],
  ['--may-be-data', undefined],
  ['a b', undefined],
])(
  'A shell that runs the command for key %j of registry %j releases that key, and nothing else',
  (key, registryKey) => {
    const command = releaseCommand(key, registryKey);
    expect(command).not.toMatch(/[\p{C}\p{Zl}\p{Zp}]/u);
    const script = `redis-locks() { printf '%s\\0' "$@"; }\n${command}`;
    const env = { ...process.env, LC_ALL: 'C.UTF-8' };
    const words = execFileSync('bash', ['-c', script], { encoding: 'utf8', env }).split('\0').slice(0, -1);
    expect(readArguments(words)).toMatchObject({
      command: 'release',
      operands: [key],
      values: { 'may-be-data': true, ...(registryKey === undefined ? {} : { 'registry-key': registryKey }) },
    });
  },
);
