import { holderOf } from '../../../lib/api/owner-name';
import { keysOf } from '../plan';
import type { ScriptRun } from '../server/redis-server';
import { lockName, ownersOf, type World } from '../world';

/** The names of scripts that unlock by force begin with it. */
const BY_FORCE = 'unlock by force';

/** The holders that a forced unlock ends: those that it has seen, and nobody that came after them. */
export class ForcedUnlocks {
  readonly #world: World;
  readonly #excuse: (key: string, owner: string) => void;
  /** By key: who had it after the last script. */
  readonly #owners = new Map<string, readonly string[]>();
  readonly #keys: readonly string[];
  /** Their names. */
  readonly #scripts: ReadonlyMap<string, string>;

  constructor(world: World, scripts: ReadonlyMap<string, string>, excuse: (key: string, owner: string) => void) {
    this.#world = world;
    this.#keys = keysOf(world.plan);
    this.#scripts = scripts;
    this.#excuse = excuse;
  }

  /** After each script; true when it unlocked by force. */
  ran({ source, args }: ScriptRun): boolean {
    const isForced = this.#scripts.get(source)?.startsWith(BY_FORCE) === true;
    for (const key of this.#keys) {
      const owners = ownersOf(this.#world.server, lockName(key)).map(acquisitionOf);
      for (const owner of isForced ? (this.#owners.get(key) ?? []) : []) {
        const wasSeen = args.some((arg) => arg.split(' ').some((seen) => acquisitionOf(seen) === owner));
        if (wasSeen && !owners.includes(owner)) this.#excuse(key, owner);
      }
      this.#owners.set(key, owners);
    }
    return isForced;
  }
}

/** Of a shared lock too, and of a grant by hand-over. */
function acquisitionOf(value: string): string {
  return (holderOf(value.replace(/^(semaphore|read|write):/, '')) ?? '').replace(/@\d+$/, '');
}
