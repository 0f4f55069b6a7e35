import crypto from 'node:crypto';
import path from 'node:path';
import { Script } from 'node:vm';
import { build } from 'esbuild';
import type * as Library from '../../../lib';
import type { States } from '../../../lib/internal/states';
import { modulesWithScripts, scriptsIn } from '../../../support/all-scripts';
import { mutating } from '../../../support/mutations';
import type { VirtualTimer } from './simulated-process';

/** What an instance asks of the process that it runs in. */
export interface Surroundings {
  now(): number;
  wallNow(): number;
  immediate(run: () => void): void;
  setTimeout(callback: () => void, ms: number): VirtualTimer;
  clearTimeout(timer: VirtualTimer | undefined): void;
  randomUUID(): string;
  random(): number;
}

/** A module instance of the library, and the process that it runs in at present. */
export interface LibraryInstance {
  readonly library: typeof Library;
  surroundings: Surroundings;
  /** What `make` makes, and a function that counts what is in the maps and sets that were made with it. */
  counting<T>(make: () => T): readonly [T, count: () => number];
  readonly states: typeof States;
  /** The sources of its Lua scripts with a name for each. */
  readonly scripts: ReadonlyMap<string, string>;
}

interface ScriptObject {
  readonly name: string;
  readonly source: string;
  readonly forMany?: { readonly source: string };
  readonly allOrNone?: { readonly source: string };
  readonly grants: unknown;
}

/** What the bundle exports beside the library. */
interface Internals {
  readonly clock: object;
  readonly Script: new (...args: never[]) => ScriptObject;
  /** What the modules export that may have scripts. */
  readonly modules: readonly object[];
  readonly States: typeof States;
}

/** In place of a WeakRef: when garbage is collected is not in the hands of a seed. */
class LastingRef<T> {
  readonly #target: T;

  constructor(target: T) {
    this.#target = target;
  }

  deref(): T {
    return this.#target;
  }
}

/** The library as one file of CommonJS, for the simulation to evaluate once for each process; with these mutations. */
export async function bundleLibrary(mutations: readonly string[] = []): Promise<string> {
  const modules = modulesWithScripts();
  const { outputFiles } = await build({
    stdin: {
      contents: `
export * from './index';
export { clock } from './internal/clock';
export { States } from './internal/states';
export { Script } from './redis/script';
${modules.map((file, i) => `import * as module${i} from ${JSON.stringify(file)};`).join('\n')}
export const modules = [${modules.map((_, i) => `module${i}`).join(', ')}];`,
      resolveDir: path.resolve(__dirname, '../../../lib'),
      loader: 'ts',
    },
    plugins: [mutating(mutations)],
    bundle: true,
    write: false,
    platform: 'node',
    target: 'es2022',
    format: 'cjs',
    logLevel: 'silent',
  });
  return outputFiles[0]?.text ?? '';
}

/** Evaluates the bundle whenever it is called: instances share nothing. */
export function libraryLoader(bundle: string): () => LibraryInstance {
  const text = `(function (exports, module, require, Math, WeakRef, Map, Set, performance, Date, setTimeout, setInterval, setImmediate) {
${bundle}
})`;
  const script = new Script(text, { filename: 'library-bundle.js' });
  return () => {
    const module: { exports: Record<string, unknown> } = { exports: {} };
    const instance = { surroundings: absent } as { -readonly [K in keyof LibraryInstance]: LibraryInstance[K] };
    let collections: { readonly size: number }[] | undefined;
    class CountedMap<K, V> extends Map<K, V> {
      constructor(entries?: Iterable<readonly [K, V]>) {
        super(entries);
        collections?.push(this);
      }
    }
    class CountedSet<T> extends Set<T> {
      constructor(values?: Iterable<T>) {
        super(values);
        collections?.push(this);
      }
    }
    instance.counting = (make) => {
      const made: { readonly size: number }[] = [];
      collections = made;
      const one = make();
      collections = undefined;
      return [one, () => made.reduce((sum, { size }) => sum + size, 0)];
    };
    const math = Object.defineProperties({}, Object.getOwnPropertyDescriptors(Math)) as typeof Math;
    math.random = () => instance.surroundings.random();
    const load = (name: string): unknown =>
      name === 'node:crypto' ? { ...crypto, randomUUID: () => instance.surroundings.randomUUID() } : require(name);
    script.runInThisContext()(module.exports, module, load, math, LastingRef, CountedMap, CountedSet, {
      timeOrigin: 0,
    });
    const { clock, Script: AScript, modules, States: states, ...library } = module.exports as unknown as Internals;
    replaceClock(clock, instance);
    instance.states = states;
    instance.library = library as never;
    instance.scripts = namesOf(scriptsIn(modules, (value) => value instanceof AScript));
    return instance;
  };
}

function replaceClock(clock: object, instance: LibraryInstance): void {
  Object.assign(clock, {
    now: () => instance.surroundings.now(),
    wallNow: () => instance.surroundings.wallNow(),
    immediate: () => new Promise<void>((resolve) => instance.surroundings.immediate(resolve)),
    setTimeout: (callback: () => void, ms: number) => instance.surroundings.setTimeout(callback, ms),
    clearTimeout: (timer: VirtualTimer | undefined) => instance.surroundings.clearTimeout(timer),
  });
}

function namesOf(scripts: readonly ScriptObject[]): Map<string, string> {
  const names = new Map<string, string>();
  for (const { name, source, forMany, allOrNone, grants } of scripts) {
    // RELEASE of `fair` is also HAND_OVER, and RENEW of spring also RENEW_GRANT: the text has the name that grants nothing.
    if (names.has(source) && grants !== undefined) continue;
    names.set(source, name);
    if (forMany !== undefined) names.set(forMany.source, `${name} x n`);
    if (allOrNone !== undefined) names.set(allOrNone.source, `${name} all or none`);
  }
  return names;
}

/** Of an instance between two simulations: nothing of the last one may run any more. */
const absent: Surroundings = {
  now: () => 0,
  wallNow: () => 0,
  immediate: () => undefined,
  setTimeout: () => {
    throw new Error('code of an earlier simulation set a timer');
  },
  clearTimeout: () => undefined,
  randomUUID: () => 'none',
  random: () => 0,
};
