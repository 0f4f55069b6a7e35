import assert from 'node:assert/strict';
import { cp, mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { freePort } from '../../../support/free-port';
import { type Cell, check, type Report } from '../../../support/grounds/cell';
import { installUser, ROOT } from '../folder';
import { runProgram } from '../program';
import { nodeBinary } from '../runtimes';
import { ownServer, Server } from '../server';
import {
  BULLMQ,
  CLIENTS,
  CRONER,
  FASTIFY,
  FASTIFY_PLUGIN,
  NESTS,
  NEXT,
  NODE_CRON,
  NODE_TYPES,
  NODES,
  REACT,
  REFLECT_METADATA,
  RXJS,
} from '../versions';

const EXAMPLES = join(ROOT, 'docs/examples');

interface Framework {
  readonly name: string;
  readonly title: string;
  /** The application of docs/examples. */
  readonly example: string;
  readonly packages: Readonly<Record<string, string>>;
  /** What its test needs before it, after `npm test` of its package.json. */
  readonly test: readonly (readonly string[])[];
  /** Makes another application of it. */
  change?(folder: string): Promise<void>;
  /** It cannot be built, as the pages say, and says this. */
  readonly refusal?: RegExp;
}

const NODE_TEST = ['--test', '--test-force-exit'];
const TSC = ['node_modules/typescript/bin/tsc'];
const nest = ({ nest, testing }: (typeof NESTS)[11]) => ({
  '@nestjs/common': nest,
  '@nestjs/core': nest,
  '@nestjs/platform-express': nest,
  '@nestjs/testing': testing,
  '@types/node': NODE_TYPES,
  'reflect-metadata': REFLECT_METADATA,
  rxjs: RXJS,
  typescript: '5.9.3',
});

const FRAMEWORKS: readonly Framework[] = [
  {
    name: 'nestjs-11',
    title: `NestJS ${NESTS[11].nest}`,
    example: 'nestjs',
    packages: nest(NESTS[11]),
    test: [TSC, [...NODE_TEST, 'dist/app.test.js']],
    change: async (folder) => {
      // As docs/examples says: CommonJS, and no ending of imports.
      for (const name of ['main', 'app.test', 'app.module']) {
        const file = join(folder, 'src', `${name}.ts`);
        await writeFile(file, (await readFile(file, 'utf8')).replaceAll("module.js'", "module'"));
      }
      const file = join(folder, 'package.json');
      await writeFile(file, (await readFile(file, 'utf8')).replace('"type": "module"', '"type": "commonjs"'));
    },
  },
  {
    name: 'nestjs-12',
    title: `NestJS ${NESTS[12].nest}`,
    example: 'nestjs',
    packages: nest(NESTS[12]),
    test: [TSC, [...NODE_TEST, 'dist/app.test.js']],
  },
  {
    name: 'bullmq',
    title: `BullMQ ${BULLMQ}`,
    example: 'bullmq',
    packages: { bullmq: BULLMQ, ...CLIENTS['ioredis-5'] },
    test: [NODE_TEST],
  },
  {
    name: 'node-cron',
    title: `node-cron ${NODE_CRON}, croner ${CRONER}`,
    example: 'scheduler',
    packages: { 'node-cron': NODE_CRON, croner: CRONER },
    test: [NODE_TEST],
  },
  {
    name: 'fastify',
    title: `Fastify ${FASTIFY}`,
    example: 'fastify',
    packages: { fastify: FASTIFY, 'fastify-plugin': FASTIFY_PLUGIN },
    test: [NODE_TEST],
  },
  {
    name: 'next',
    title: `Next ${NEXT}, built, Node.js runtime`,
    example: 'nextjs',
    packages: { next: NEXT, react: REACT, 'react-dom': REACT },
    test: [['node_modules/next/dist/bin/next', 'build'], NODE_TEST],
  },
  {
    name: 'next-edge',
    title: `Next ${NEXT}, edge runtime: the build refuses, since it lacks modules of Node`,
    example: 'nextjs',
    packages: { next: NEXT, react: REACT, 'react-dom': REACT },
    test: [['node_modules/next/dist/bin/next', 'build']],
    refusal: /Cannot find module 'node:/,
    change: async (folder) => {
      await mkdir(join(folder, 'app/edge'), { recursive: true });
      await writeFile(join(folder, 'app/edge/route.js'), EDGE);
    },
  },
];

const EDGE = `import { InMemoryLockRegistry } from 'redis-lock-registry/testing';
export const runtime = 'edge';
export const GET = async () => Response.json(await new InMemoryLockRegistry().run('key', () => 'ran'));
`;

/** The example's files, in an application with these packages. */
async function install({ name, example, packages, change }: Framework): Promise<string> {
  const folder = await installUser(`framework-${name}`, { ...CLIENTS['redis-6'], ...packages });
  // A user's own programs, which the tests of an example are not.
  for (const file of ['app.mjs', 'clients.mjs', 'tested.mjs', 'types.mts', 'worker.mjs']) await rm(join(folder, file));
  await cp(join(EXAMPLES, example), folder, {
    recursive: true,
    filter: (path) => !/node_modules|package\.json$/.test(path.slice(EXAMPLES.length)),
  });
  await change?.(folder);
  return folder;
}

async function runFramework(framework: Framework, report: Report): Promise<undefined> {
  const node = await nodeBinary(NODES[24]);
  const folder = await install(framework);
  const server = await Server.start(ownServer());
  try {
    const what = framework.refusal
      ? 'it cannot be built'
      : 'the application of docs/examples is built, and its tests pass';
    await check(report, what, async () => {
      const PATH = `${dirname(node)}:${process.env.PATH}`;
      const env = { REDIS_URL: server.url, PORT: String(await freePort()), NEXT_TELEMETRY_DISABLED: '1', PATH };
      let said = '';
      if (framework.refusal !== undefined) {
        const [words = []] = framework.test;
        return assert.rejects(runProgram([node, ...words], folder, env), framework.refusal);
      }
      for (const words of framework.test) said = (await runProgram([node, ...words], folder, env)).stdout;
      assert.match(said, /^(#|ℹ) pass [1-9]/m);
      assert.match(said, /^(#|ℹ) fail 0$/m);
    });
  } finally {
    await server.stop();
  }
  return undefined;
}

/** The applications of docs/examples. */
export const frameworkCells: readonly Cell[] = FRAMEWORKS.map((framework) => ({
  name: `framework/${framework.name}`,
  ground: 'framework',
  title: framework.title,
  through: `Node ${NODES[24]}`,
  limit: 480_000,
  run: (report) => runFramework(framework, report),
}));
