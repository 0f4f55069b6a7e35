import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import Module from 'node:module';
import { sep } from 'node:path';
import { inspect } from 'node:util';
import type { Circus } from '@jest/types';
import { transformSync } from 'esbuild';
import { expect } from 'expect';
import * as circus from 'jest-circus';
import { ModuleMocker } from 'jest-mock';

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
const { setImmediate } = globalThis;
const mocker = new ModuleMocker(globalThis);

/** What is thrown while a test runs, and handled by nobody. */
let stray: unknown[] = [];

process.on('unhandledRejection', (error) => stray.push(error));
process.on('uncaughtException', (error) => stray.push(error));

/** What `@jest/globals` is here. Tests that need more of Jest are left out. */
const GLOBALS = {
  ...circus,
  expect,
  jest: {
    fn: mocker.fn.bind(mocker),
    spyOn: mocker.spyOn.bind(mocker),
    restoreAllMocks: () => mocker.restoreAllMocks(),
    setTimeout: () => undefined,
  },
};

/** Has `require` compile the TypeScript below `root`, and find this in place of Jest. */
export function install(root: string): void {
  const { _load: load } = modules;
  const { '.ts': other } = modules._extensions;
  modules._load = (request, ...rest) => (request === '@jest/globals' ? GLOBALS : load.call(Module, request, ...rest));
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
 * A file of tests for Jest's own runner. The file is loaded once and not for each mutant. Its modules are its own:
 * `lib` is loaded for each file.
 */
export class TestFile {
  readonly path: string;
  readonly #root: string;
  #modules: Record<string, unknown> = {};
  /** What the runner knows of the file. */
  #state = circus.getState();
  #tests: Circus.TestEntry[] = [];
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

  /** Runs the tests of these names, or all of them. `begins` gets the name of each test before it runs. */
  async run(names: ReadonlySet<string> | undefined, limit: (name: string) => number, begins: (name: string) => void) {
    this.#load();
    const outcomes: Outcome[] = [];
    let startedAt = performance.now();
    for (const test of this.#tests) {
      const isChosen = names?.has(nameOf(test)) ?? true;
      Object.assign(test, { mode: isChosen ? undefined : 'skip', errors: [], timeout: limit(nameOf(test)) });
    }
    const begin = (test: Circus.TestEntry): void => {
      stray = [];
      this.#state.testTimeout = limit(nameOf(test)); // for its hooks
      begins(nameOf(test));
    };
    const follow = async (event: Circus.Event): Promise<void> => {
      // Its beforeAll belongs to its first test.
      if (event.name === 'run_describe_start') testsIn(event.describeBlock).filter(isOn).slice(0, 1).forEach(begin);
      if (event.name === 'test_started') begin(event.test);
      if (event.name !== 'test_done') return;
      // Then Node has said which rejections nobody handles.
      await new Promise(setImmediate);
      await new Promise(setImmediate);
      const failures = [...event.test.errors, ...stray].map((error) => (Array.isArray(error) ? error[0] : error));
      const name = nameOf(event.test);
      const isOverTime = failures.some((error) => typeof error === 'string' && /^Exceeded timeout/.test(error));
      const failure = failures.length === 0 ? undefined : inspect(failures[0]);
      const endedAt = performance.now();
      outcomes.push({ name, ms: endedAt - startedAt, failure, isOverTime });
      startedAt = endedAt;
      if (names !== undefined && failure !== undefined) for (const test of this.#tests) test.mode = 'skip';
    };
    circus.addEventHandler(follow);
    await circus.run();
    circus.removeEventHandler(follow);
    this.#keepModules();
    return outcomes;
  }

  #load(): void {
    if (!this.#isLoaded) this.#modules = {};
    this.#useModules();
    if (this.#isLoaded) {
      circus.setState(this.#state);
      return;
    }
    circus.resetState();
    require(this.path);
    this.#state = circus.getState();
    this.#tests = testsIn(this.#state.rootDescribeBlock).filter(isOn);
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

function testsIn(block: Circus.DescribeBlock): Circus.TestEntry[] {
  return block.children.flatMap((child) => (child.type === 'test' ? [child] : testsIn(child)));
}

function isOn({ mode }: Circus.TestEntry): boolean {
  return mode !== 'skip';
}

/** Behind the names of the blocks around it. */
function nameOf({ name, parent }: Circus.TestEntry | Circus.DescribeBlock): string {
  return parent?.parent === undefined ? name : `${nameOf(parent)} ${name}`;
}
