import assert from 'node:assert/strict';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { transform } from 'esbuild';
import { type Cell, check, type Report } from '../../../support/grounds/cell';
import { installUser } from '../folder';
import { blockOf, runProgram } from '../program';
import { bunBinary, denoBinary, nodeBinary } from '../runtimes';
import { ownServer, Server } from '../server';
import { BUN, CLIENTS, DENO, JEST, NODE_TYPES, NODES, VITESTS } from '../versions';

interface Runner {
  readonly name: string;
  readonly title: string;
  readonly through: string;
  readonly packages: Readonly<Record<string, string>>;
  /** The file of its tests, of user/tested.mjs. */
  readonly file: string;
  readonly tests: string;
  /** What runs this file. */
  command(file: string): Promise<readonly string[]>;
  /** In what it prints. */
  readonly passed: RegExp;
  /** The page's program with its fake timers, and a file for it. */
  readonly fakeTimers?: readonly [file: string, code: () => Promise<string>];
}

/** What its fake timers are called. */
const fakeTimersOf = async (runner: string, name: string) => {
  const code = blockOf('docs/testing.md', "from '@jest/globals'").replace("from '@jest/globals'", `from '${runner}'`);
  return (await transform(code.replace(/\bjest\b/g, name), { loader: 'ts' })).code;
};

/** The page's steps. Bun advances its timers by another name. */
const inSteps = (imports: string, install: string, tick: string, remove: string) =>
  `${blockOf('docs/testing.md', "from 'node:test'")
    .replace("import { mock } from 'node:test';", imports)
    .replace(/mock\.timers\.tick/, tick)
    .replace('mock.timers.enable();', install)
    .replace('mock.timers.reset();', remove)}`;

const THREE = "for (const type of ['spin', 'pub-sub', 'fair'])";
const IMPORTS = "import { EXPECTED, inMemory, onRedis } from '../tested.mjs';";

/** For runners that have `test` and `expect`. */
const withExpect = (imports: string) => `${imports}\n${IMPORTS}
test('in memory', async () => expect(await inMemory()).toBe(EXPECTED));
${THREE} test(type, async () => expect(await onRedis(type)).toBe(EXPECTED));
`;

const vitest = (version: string): Runner => ({
  name: `vitest-${version.split('.')[0]}`,
  title: `vitest ${version}`,
  through: `Node ${NODES[24]}`,
  packages: { vitest: version },
  file: 'user.test.mjs',
  tests: withExpect("import { expect, test } from 'vitest';"),
  command: async (file) => [await nodeBinary(NODES[24]), '../node_modules/vitest/vitest.mjs', 'run', file],
  passed: /Tests +\d+ passed \(\d+\)/,
  fakeTimers: ['page.test.mjs', () => fakeTimersOf('vitest', 'vi')],
});

const nodeTest = (line: keyof typeof NODES): Runner => ({
  name: `node-test-${line}`,
  title: '`node:test`',
  through: `Node ${NODES[line]}`,
  packages: {},
  file: 'user.test.mjs',
  tests: `import assert from 'node:assert/strict';\nimport test from 'node:test';\n${IMPORTS}
test('in memory', async () => assert.equal(await inMemory(), EXPECTED));
${THREE} test(type, async () => assert.equal(await onRedis(type), EXPECTED));
`,
  command: async (file) => [await nodeBinary(NODES[line]), '--test', '--test-reporter=tap', file],
  passed: /^# pass [1-9]\d*\n# fail 0$/m,
  fakeTimers: [
    'page.test.mjs',
    async () =>
      inSteps("import { mock } from 'node:test';", 'mock.timers.enable();', 'mock.timers.tick', 'mock.timers.reset();'),
  ],
});

const RUNNERS: readonly Runner[] = [
  {
    name: 'jest-30',
    title: `jest ${JEST}`,
    through: `Node ${NODES[24]}`,
    packages: { jest: JEST, '@jest/globals': JEST },
    file: 'user.test.mjs',
    tests: withExpect("import { expect, test } from '@jest/globals';"),
    command: async (file) => [
      await nodeBinary(NODES[24]),
      '--experimental-vm-modules',
      '--disable-warning=ExperimentalWarning',
      '../node_modules/jest/bin/jest.js',
      '--detectOpenHandles',
      '--config={"testMatch":["**/*.mjs"],"transform":{}}',
      file,
    ],
    passed: /Tests: +(\d+) passed, \1 total/,
    fakeTimers: ['page.test.mjs', () => fakeTimersOf('@jest/globals', 'jest')],
  },
  ...VITESTS.map(vitest),
  ...([20, 22, 24, 26] as const).map(nodeTest),
  {
    name: 'bun-test',
    title: `\`bun test\` ${BUN}`,
    through: `Bun ${BUN}`,
    packages: {},
    file: 'user.test.mjs',
    tests: withExpect("import { expect, test } from 'bun:test';"),
    command: async (file) => [await bunBinary(), 'test', `./${file}`],
    passed: /^ *[1-9]\d* pass\n *0 fail$/m,
    fakeTimers: [
      'page.test.mjs',
      async () => {
        const imports = "import { jest, test } from 'bun:test';";
        const code = inSteps(imports, 'jest.useFakeTimers();', 'jest.advanceTimersByTime', 'jest.useRealTimers();');
        const lines = code.split('\n');
        const isImport = (line: string) => line.startsWith('import ');
        const rest = lines.filter((line) => !isImport(line));
        return [...lines.filter(isImport), "test('steps', async () => {", ...rest, '});'].join('\n');
      },
    ],
  },
  {
    name: 'deno-test',
    title: '`deno test` with `--sanitize-ops --sanitize-resources`',
    through: `Deno ${DENO}`,
    // It checks types, and wants those of Node where there is a package.json.
    packages: { '@types/node': NODE_TYPES },
    file: 'user.test.mjs',
    tests: `import assert from 'node:assert/strict';\n${IMPORTS}
Deno.test('in memory', async () => assert.equal(await inMemory(), EXPECTED));
${THREE} Deno.test(type, async () => assert.equal(await onRedis(type), EXPECTED));
`,
    command: async (file) => [
      await denoBinary(),
      'test',
      '--allow-net',
      '--allow-env',
      '--allow-sys=hostname',
      '--sanitize-ops',
      '--sanitize-resources',
      file,
    ],
    passed: /^ok \| [1-9]\d* passed \| 0 failed/m,
  },
];

async function passes(runner: Runner, folder: string, file: string, code: string, url: string): Promise<void> {
  await writeFile(join(folder, file), code);
  const { stdout, stderr } = await runProgram(await runner.command(file), folder, { REDIS_URL: url }, 90_000);
  const said = stdout + stderr;
  assert.match(said, runner.passed);
  assert.doesNotMatch(said, /did not exit|open handle/);
}

async function runRunner(runner: Runner, report: Report): Promise<undefined> {
  const user = await installUser(`runner-${runner.name}`, { ...CLIENTS['redis-6'], ...runner.packages });
  // Away from the other programs, some of which a runner would take for tests.
  const folder = join(user, 'tests');
  await mkdir(folder, { recursive: true });
  const server = await Server.start(ownServer());
  try {
    await check(report, 'registries in memory and on Redis, closed, leave nothing behind', () =>
      passes(runner, folder, runner.file, runner.tests, server.url),
    );
    const [file, code] = runner.fakeTimers ?? [];
    if (file !== undefined && code !== undefined)
      await check(report, 'the program of docs/testing.md with its fake timers', async () =>
        passes(runner, folder, file, await code(), server.url),
      );
  } finally {
    await server.stop();
  }
  return undefined;
}

/** Each test runner, on the runtime that it is made for. */
export const runnerCells: readonly Cell[] = RUNNERS.map((runner) => ({
  name: `runner/${runner.name}`,
  ground: 'runner',
  title: runner.title,
  through: runner.through,
  limit: 300_000,
  run: (report) => runRunner(runner, report),
}));
