import type { LibraryInstance } from './process/library';
import type { ScriptRun } from './server/redis-server';
import { sha1 } from './server/script-engine';
import type { Host } from './world';

/** One execution of a script, for the history: its name, its arguments and its reply, with short names for owners. */
export function describeRun(
  { source, keys, args, reply }: ScriptRun,
  hosts: readonly Host[],
  instances: readonly LibraryInstance[],
): string {
  const name = instances[0]?.scripts.get(source) ?? `script ${sha1(source).slice(0, 6)}`;
  const text = `${name} ${keys[0] ?? ''} [${args.join(', ')}] -> ${JSON.stringify(reply)}`;
  return hosts.reduce((shown, { clientId, process }) => shown.replaceAll(clientId, process.name), text);
}
