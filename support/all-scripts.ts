import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { LockScript, Script } from '../lib/redis/script';

const LIB = join(__dirname, '../lib');

/** All scripts that the modules of kinds, redis and tools/inspection export, also within tables; of those about a lock all three forms. */
export function allScripts(): Script[] {
  return libraryScripts().flatMap((script) =>
    script instanceof LockScript ? [script, script.forMany, script.inOrder] : [script],
  );
}

/** The same, each once: without the forms that run a script for many locks. */
export function libraryScripts(): Script[] {
  const files = ['kinds', 'redis', 'tools/inspection'].flatMap((folder) =>
    readdirSync(join(LIB, folder), { recursive: true, encoding: 'utf8' }).map((name) => join(LIB, folder, name)),
  );
  const modules = files.filter((name) => name.endsWith('.ts')).map((name) => require(name) as object);
  return [...new Set(modules.flatMap((module) => scriptsIn(module)))];
}

function scriptsIn(value: unknown): Script[] {
  if (value instanceof Script) return [value];
  return value !== null && typeof value === 'object' ? Object.values(value).flatMap(scriptsIn) : [];
}
