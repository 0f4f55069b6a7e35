import { execFile } from 'node:child_process';
import { mkdir, rm, symlink, writeFile } from 'node:fs/promises';
import { join, relative } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, afterEach, beforeAll, beforeEach } from '@jest/globals';
import { transformSync } from 'esbuild';
import { createClient } from 'redis';
import manifest from '../../../package.json';
import { type RedisServer, startRedis } from '../../../support/redis';
import { startUpstashServer, upstashOptions } from '../../../support/upstash-server';
import { BUILT_PACKAGE } from '../../support/built-package';
import { connected } from '../../support/connected';
import { connectTo } from '../../support/private-redis';
import type { TestClient } from '../../support/redis';
import { ROOT } from './pages';
import { type Program, withRedis } from './programs';

const run = promisify(execFile);

/** What an application imports, and the source of each: where its types are. */
const SOURCES = Object.entries(manifest.exports).flatMap(([name, target]) => {
  if (typeof target === 'string') return [];
  const source = target.types.replace(/^\.\/dist\/(.*)\.d\.ts$/, 'lib/$1.ts');
  return [[name.replace('.', 'redis-lock-registry'), [join(ROOT, source)]] as const];
});

/** What the tests of programs use. */
export interface Programs {
  readonly folder: ProgramFolder;
  /** A connection of the test's own. */
  readonly admin: TestClient;
  /** The environment of the programs: where @upstash/redis finds the same Redis. */
  readonly env: NodeJS.ProcessEnv;
}

/**
 * A folder in which programs of the pages run as an application's own: ES modules that import `redis-lock-registry` and
 * `redis` by name.
 */
export class ProgramFolder {
  readonly path: string;
  /** Where the programs find Redis. */
  readonly redis: { readonly host: string; readonly port: number };

  private constructor(name: string, server: RedisServer | undefined) {
    const address = server?.address ?? { host: 'none', port: 0 };
    if ('path' in address) throw new Error('The programs need a Redis on TCP: start it with `port: true`');
    this.redis = address;
    // Inside the project, so that the programs find its packages.
    this.path = join(__dirname, '.blocks', name);
  }

  /** Registers the hooks of the surrounding `describe`: a folder, and a server that is empty before each test. */
  static install(name: string): Programs {
    const programs = {} as { -readonly [key in keyof Programs]: Programs[key] };
    let server: RedisServer;
    let stopUpstash: () => void;
    beforeAll(async () => {
      server = await startRedis({ port: true });
      const socket = server.address as { host: string; port: number };
      const redis = await connected(createClient({ socket, RESP: 2 }));
      const upstash = await startUpstashServer(redis);
      const { url, token } = upstashOptions(upstash);
      programs.env = { ...process.env, UPSTASH_REDIS_REST_URL: url, UPSTASH_REDIS_REST_TOKEN: token };
      stopUpstash = () => {
        upstash.stop();
        redis.destroy();
      };
      programs.folder = await ProgramFolder.create(name, server);
    });
    beforeEach(async () => {
      programs.admin = await connectTo(server.address);
      await programs.admin.flushAll();
    });
    afterEach(() => programs.admin.destroy());
    afterAll(async () => {
      stopUpstash();
      await server.stop();
      await programs.folder.remove();
    });
    return programs;
  }

  /** With the package as it is built. The programs will find this server, if they need one, where the pages say that Redis is. */
  static async create(name: string, server?: RedisServer): Promise<ProgramFolder> {
    const folder = new ProgramFolder(name, server);
    await folder.remove();
    await mkdir(join(folder.path, 'node_modules'), { recursive: true });
    // A package of its own: inside the project's the name would mean its `dist`, which may be old or missing.
    await writeFile(join(folder.path, 'package.json'), JSON.stringify({ type: 'module' }));
    await symlink(BUILT_PACKAGE, join(folder.path, 'node_modules/redis-lock-registry'));
    return folder;
  }

  remove(): Promise<void> {
    return rm(this.path, { recursive: true, force: true });
  }

  /** Writes the program as JavaScript that Node 20 runs, and returns its path. JavaScript stays as it stands on its page. */
  async script({ page, line, code, language }: Program): Promise<string> {
    const source = withRedis(code, this.redis);
    const path = join(this.path, `${fileName(page, line)}.js`);
    await writeFile(path, language === 'js' ? source : asJavaScript(source));
    return path;
  }

  /** What the compiler says of the programs under the strict settings of this project: nothing, if all is well. */
  async complaints(programs: readonly Program[]): Promise<string> {
    for (const { page, line, code, language } of programs) {
      if (language === 'js') continue;
      await writeFile(join(this.path, `${fileName(page, line)}.ts`), code);
    }
    const settings = {
      extends: relative(this.path, join(ROOT, 'tsconfig.json')),
      compilerOptions: {
        rootDir: ROOT,
        noEmit: true,
        // What an application with decorators sets.
        experimentalDecorators: true,
        emitDecoratorMetadata: true,
        erasableSyntaxOnly: false,
        isolatedModules: false,
        paths: Object.fromEntries(SOURCES),
      },
      include: ['*.ts'],
    };
    await writeFile(join(this.path, 'tsconfig.json'), JSON.stringify(settings));
    const compiler = run(join(ROOT, 'node_modules/.bin/tsc'), ['-p', this.path], { timeout: 50_000 });
    return compiler.then(
      ({ stdout }) => stdout,
      ({ stdout, message }: { stdout: string; message: string }) => stdout || message,
    );
  }
}

function asJavaScript(source: string): string {
  const tsconfigRaw = { compilerOptions: { experimentalDecorators: true } };
  return transformSync(source, { loader: 'ts', format: 'esm', target: 'node20', tsconfigRaw }).code;
}

function fileName(page: string, line: number): string {
  return `${page.replace(/\W/g, '-')}-${line}`;
}
