import type { Locks } from '../candidates/candidate';
import { burst } from './burst';
import { callers } from './callers';
import { cycles } from './cycles';
import { heap } from './heap';
import { heldParts } from './held-parts';
import { leases } from './leases';
import type { Load, Observe } from './load';
import { holder, waiters } from './waiters';

const loads = { burst, callers, cycles, heap, heldParts, holder, leases, waiters };

type SettingsOf<L> = L extends Load<infer Settings> ? Settings : never;

/** The load that a process runs, and its settings. */
export type LoadSpec = {
  [Name in keyof typeof loads]: { readonly load: Name; readonly settings: SettingsOf<(typeof loads)[Name]> };
}[keyof typeof loads];

export async function begin(locks: Locks, { load, settings }: LoadSpec): Promise<Observe> {
  return (loads[load] as Load<unknown>)(locks, settings);
}
