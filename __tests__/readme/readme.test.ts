import { execFile } from 'node:child_process';
import { mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join, relative } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { transform } from 'esbuild';
import { type RedisServer, startRedis } from '../../scripts/redis';
import { describeReal } from '../support/redis';

const root = join(__dirname, '../..');
/** Inside the project, so that the blocks find its packages. */
const folder = join(__dirname, '.blocks');
const run = promisify(execFile);

const pages = ['README.md', 'docs/with-java-services.md', 'docs/segmented-lock.md'];

/** The TypeScript blocks of the pages, each a module of its own, as a reader would paste it. */
async function blocks(): Promise<string[]> {
  const texts = await Promise.all(pages.map((page) => readFile(join(root, page), 'utf8')));
  return texts.flatMap((text) => [...text.matchAll(/^```ts\n(.*?)^```$/gms)].map(([, code]) => code ?? ''));
}

describeReal('the code of the README and its pages', () => {
  const files: string[] = [];
  let server: RedisServer;

  beforeAll(async () => {
    server = await startRedis({ port: true });
    await rm(folder, { recursive: true, force: true });
    await mkdir(folder, { recursive: true });
    const lib = relative(folder, join(root, 'lib'));
    for (const [index, code] of (await blocks()).entries()) {
      const file = join(folder, `block-${index + 1}.mts`);
      await writeFile(file, code.replace("'redis-lock-registry'", `'${lib}/index.js'`));
      files.push(file);
    }
  });

  afterAll(async () => {
    await server.stop();
    await rm(folder, { recursive: true, force: true });
  });

  it('compiles under strict settings', async () => {
    const settings = {
      extends: relative(folder, join(root, 'tsconfig.json')),
      compilerOptions: {
        rootDir: root,
        noEmit: true,
        experimentalDecorators: true,
        erasableSyntaxOnly: false,
        isolatedModules: false,
      },
      include: ['*.mts'],
    };
    await writeFile(join(folder, 'tsconfig.json'), JSON.stringify(settings));
    const compiler = run(join(root, 'node_modules/.bin/tsc'), ['-p', folder]);
    const complaints = await compiler.then(
      ({ stdout }) => stdout,
      ({ stdout }: { stdout: string }) => stdout,
    );
    expect(complaints).toBe('');
  }, 60_000);

  it('runs against a real Redis, and ends by itself', async () => {
    expect(files.length).toBeGreaterThan(4);
    const { address } = server as { address: { host: string; port: number } };
    const env = { ...process.env, REDIS_URL: `redis://${address.host}:${address.port}` };
    const outputs: string[] = [];
    for (const file of files) {
      const script = file.replace('.mts', '.cjs');
      await writeFile(script, await asScript(file));
      const { stdout } = await run(process.execPath, ['-r', 'esbuild-register', script], { env, timeout: 20_000 });
      outputs.push(stdout);
    }
    expect(outputs.join('')).toContain('order 42 is ours');
    expect(outputs.join('')).toContain('closed 2026-11');
    expect(outputs.join('')).toContain('one report, from one process');
    expect(outputs.join('')).toContain('audited');
    expect(outputs.join('')).toContain('with ioredis');
    expect(outputs.join('')).toContain('what redisson.getLock("stock:7") locks');
    expect(outputs.join('')).toContain('true true false');
  }, 120_000);
});

/** Compiles to JavaScript for Node 20, which has no decorators. */
async function asScript(file: string): Promise<string> {
  const code = (await readFile(file, 'utf8')).replace('/index.js', '');
  const imports = code.match(/^import .*$/gm) ?? [];
  const module = `${imports.join('\n')}\nvoid (async () => {\n${code.replace(/^import .*$/gm, '')}\n})();\n`;
  const tsconfigRaw = { compilerOptions: { experimentalDecorators: true } };
  return (await transform(module, { loader: 'ts', format: 'cjs', target: 'node20', tsconfigRaw })).code;
}
