import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import Module from 'node:module';
import { sep } from 'node:path';
import { transformSync } from 'esbuild';
import { expect } from 'expect';
import { bind } from 'jest-each';
import { ModuleMocker } from 'jest-mock';

type Work = () => unknown;

/** A `describe`, or the file. */
interface Block {
  readonly around: Block | undefined;
  readonly name: string;
  readonly beforeAll: Work[];
  readonly beforeEach: Work[];
  readonly afterEach: Work[];
  readonly afterAll: Work[];
}

interface Test {
  readonly name: string;
  readonly block: Block;
  readonly work: Work;
}

/** How a test ended. */
export interface Outcome {
  readonly name: string;
  readonly ms: number;
  /** `undefined`: it passed. */
  readonly failure: string | undefined;
  readonly isOverTime: boolean;
}

interface Modules {
  _load(request: string, ...rest: unknown[]): unknown;
  _cache: Record<string, unknown>;
  _extensions: Record<string, (module: { _compile(code: string, path: string): void }, path: string) => void>;
}

const modules = Module as unknown as Modules;
const { setTimeout, clearTimeout, setImmediate } = globalThis;
const mocker = new ModuleMocker(globalThis);

/** The file that is being loaded. */
let loading: TestFile | undefined;
/** What is thrown while a test runs, and handled by nobody. */
let stray: unknown[] = [];

process.on('unhandledRejection', (error) => stray.push(error));
process.on('uncaughtException', (error) => stray.push(error));

/** What `@jest/globals` is here. Tests that need more of Jest are left out. */
function jestGlobals(): unknown {
  const file = (): TestFile => loading as TestFile;
  const it = (name: string, work: Work): void => file().addTest(name, work);
  const describe = (name: string, declare: Work): void => file().addBlock(name, declare);
  const skip = Object.assign(() => undefined, { each: () => () => undefined });
  const each = (call: (name: string, work: Work) => void) => bind(call as never, false);
  return {
    expect,
    it: Object.assign(it, { each: each(it), skip }),
    describe: Object.assign(describe, { each: each(describe), skip }),
    beforeAll: (work: Work) => file().block.beforeAll.push(work),
    beforeEach: (work: Work) => file().block.beforeEach.push(work),
    afterEach: (work: Work) => file().block.afterEach.push(work),
    afterAll: (work: Work) => file().block.afterAll.push(work),
    jest: {
      fn: mocker.fn.bind(mocker),
      spyOn: mocker.spyOn.bind(mocker),
      restoreAllMocks: () => mocker.restoreAllMocks(),
      setTimeout: () => undefined,
    },
  };
}

/** Has `require` compile the TypeScript below `root`, and find this in place of Jest. */
export function install(root: string): void {
  const { _load: load } = modules;
  const { '.ts': other } = modules._extensions;
  const globals = jestGlobals();
  modules._load = (request, ...rest) => (request === '@jest/globals' ? globals : load.call(Module, request, ...rest));
  modules._extensions['.ts'] = (module, path) => {
    if (!path.startsWith(root + sep)) return other?.(module, path);
    module._compile(compiled(path), path);
  };
}

/** The JavaScript of a file, which stands beside it for the next file of tests, and for the next process. */
function compiled(path: string): string {
  const kept = `${path}.compiled`;
  if (existsSync(kept)) return readFileSync(kept, 'utf8');
  const { code } = transformSync(readFileSync(path, 'utf8'), {
    loader: 'ts',
    format: 'cjs',
    target: 'es2022',
    supported: { 'dynamic-import': false },
    sourcefile: path,
  });
  writeFileSync(kept, code);
  return code;
}

/**
 * A file of tests, which runs them as Jest does, but is loaded once and not for each mutant. Its modules are its own:
 * `lib` is loaded for each file.
 */
export class TestFile {
  readonly path: string;
  readonly #root: string;
  #modules: Record<string, unknown> = {};
  #tests: Test[] = [];
  block: Block = newBlock('', undefined);
  #isLoaded = false;

  constructor(root: string, path: string) {
    this.#root = root + sep;
    this.path = path;
  }

  get isLoaded(): boolean {
    return this.#isLoaded;
  }

  /** The next run begins with a file that no mutant has touched. */
  forget(): void {
    this.#isLoaded = false;
  }

  addTest(name: string, work: Work): void {
    this.#tests.push({ name: [...namesOf(this.block), name].join(' '), block: this.block, work });
  }

  addBlock(name: string, declare: Work): void {
    const around = this.block;
    this.block = newBlock(name, around);
    declare();
    this.block = around;
  }

  /** Runs the tests of these names, or all of them. `begins` gets the name of each test before it runs. */
  async run(names: ReadonlySet<string> | undefined, limit: (name: string) => number, begins: (name: string) => void) {
    this.#load();
    const outcomes: Outcome[] = [];
    const entered: Block[] = [];
    const tests = this.#tests.filter(({ name }) => names?.has(name) ?? true);
    for (const [i, test] of tests.entries()) {
      begins(test.name);
      const outcome = await runTest(test, limit(test.name), entered);
      outcomes.push(outcome);
      if (names !== undefined && outcome.failure !== undefined) break;
      const next = tests[i + 1];
      await leave(entered, next === undefined ? [] : blocksOf(next.block));
    }
    await leave(entered, []);
    this.#keepModules();
    return outcomes;
  }

  #load(): void {
    if (!this.#isLoaded) this.#modules = {};
    this.#useModules();
    if (this.#isLoaded) return;
    this.#tests = [];
    this.block = newBlock('', undefined);
    loading = this;
    require(this.path);
    this.#isLoaded = true;
    this.#keepModules();
  }

  #useModules(): void {
    for (const path of Object.keys(modules._cache)) if (path.startsWith(this.#root)) delete modules._cache[path];
    Object.assign(modules._cache, this.#modules);
  }

  #keepModules(): void {
    for (const [path, module] of Object.entries(modules._cache)) {
      if (path.startsWith(this.#root)) this.#modules[path] = module;
    }
  }
}

function newBlock(name: string, around: Block | undefined): Block {
  return { around, name, beforeAll: [], beforeEach: [], afterEach: [], afterAll: [] };
}

function namesOf(block: Block): string[] {
  return blocksOf(block).flatMap(({ name }) => (name === '' ? [] : [name]));
}

/** From the file to the block itself. */
function blocksOf(block: Block): Block[] {
  return [...(block.around === undefined ? [] : blocksOf(block.around)), block];
}

async function runTest({ name, block, work }: Test, limit: number, entered: Block[]): Promise<Outcome> {
  const blocks = blocksOf(block);
  const startedAt = performance.now();
  stray = [];
  const failures: unknown[] = [];
  let isOverTime = false;
  const attempt = async (one: Work): Promise<boolean> => {
    try {
      await within(limit, one);
    } catch (error) {
      failures.push(error);
      isOverTime ||= error instanceof OverTime;
    }
    return failures.length === 0;
  };
  const before = blocks.flatMap((one) => {
    const isNew = !entered.includes(one);
    if (isNew) entered.push(one);
    return isNew ? one.beforeAll : [];
  });
  let isFine = true;
  for (const one of [...before, ...blocks.flatMap(({ beforeEach }) => beforeEach), work]) {
    if (isFine) isFine = await attempt(one);
  }
  for (const one of blocks.reverse().flatMap(({ afterEach }) => afterEach)) await attempt(one);
  // Then Node has said which rejections nobody handles.
  await new Promise(setImmediate);
  await new Promise(setImmediate);
  const [first] = [...failures, ...stray];
  const failure = failures.length + stray.length === 0 ? undefined : `${first instanceof Error ? first.stack : first}`;
  return { name, ms: performance.now() - startedAt, failure, isOverTime };
}

/** Ends the blocks that are not among those of the next test. */
async function leave(entered: Block[], next: readonly Block[]): Promise<void> {
  for (const block of [...entered].reverse()) {
    if (next.includes(block)) continue;
    entered.splice(entered.indexOf(block), 1);
    for (const work of block.afterAll) await within(30_000, work).catch(() => undefined);
  }
}

class OverTime extends Error {}

async function within(ms: number, work: Work): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const over = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new OverTime('The test did not end')), ms);
  });
  try {
    await Promise.race([work(), over]);
  } finally {
    clearTimeout(timer);
  }
}
