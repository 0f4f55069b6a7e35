import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { LockScript, Script } from '../lib/redis/script';

const LIB = join(__dirname, '../lib');

/** All scripts that the modules of kinds, redis and tools/inspection export, also within tables; of those about a lock all three forms. */
export function allScripts(): Script[] {
  return libraryScripts().flatMap((script) =>
    script instanceof LockScript ? [script, script.forMany, script.allOrNone] : [script],
  );
}

/** The same, each once: without the forms that run a script for many locks. */
export function libraryScripts(): Script[] {
  const modules = modulesWithScripts().map((name) => require(name) as object);
  return [...new Set(scriptsIn(modules, (value) => value instanceof Script))];
}

/** Paths of all modules that may export scripts. */
export function modulesWithScripts(): string[] {
  const files = ['kinds', 'redis', 'tools/inspection'].flatMap((folder) =>
    readdirSync(join(LIB, folder), { recursive: true, encoding: 'utf8' }).map((name) => join(LIB, folder, name)),
  );
  return files.filter((name) => name.endsWith('.ts')).sort();
}

/** The scripts in what modules export, also within tables. */
export function scriptsIn(value: unknown, isScript: (value: object) => boolean): Script[] {
  if (value === null || typeof value !== 'object') return [];
  return isScript(value) ? [value as Script] : Object.values(value).flatMap((one) => scriptsIn(one, isScript));
}
