import { KEPT } from '../../api/owner-name';
import type { Keep } from '../../core/protocol';
import { type LuaValues, lua } from '../../internal/lua';
import { IN_LUA } from '../../redis/server-errors';

/*
 * Scripts are .lua files in the folders of their kinds. What several have in common are pieces in kinds/common/lua. They are
 * inserted as text and not called as Lua functions: Lua creates a function anew at every run, which costs the server as much
 * as a command.
 *
 * Every script is idempotent: a sentinel client repeats a command whose reply was lost. A script reads before it writes,
 * or tries a single write first, so that one that the server refuses has written nothing.
 *
 * Out of memory, Redis refuses a write that needs memory to a script that has not written yet. Where that must not stop a
 * script, a write that changes nothing comes first.
 *
 * An expiry comes after every other write to its key, or with it, as by SET. Before Redis 7.2, PEXPIRE reads the clock
 * twice, and deletes a key whose ms pass in between. A later write would make that key anew, without an expiry.
 */

/** ms; a fencing counter outlives its last use by a day. When it is gone, the server's time takes over. */
const FENCE_TTL = 24 * 60 * 60 * 1000;

/**
 * Microseconds; a block of tokens ends so long after the server's time, at most. Each lease takes longer than a
 * microsecond: so the clock keeps up with the tokens that leases get, and they rise by it alone if the counter is lost.
 */
export const MOST_AHEAD = 1_000;

/** bytes of a value that another program wrote, of which a reply has no more. An owner value of this library has fewer. */
const MOST_SHOWN = 1_000;

/** In place of their number: the server refused to publish; or it did, and others may listen too. */
export const LISTENERS = { refused: -1, uncounted: -2 } as const;

/** What any script may name. */
const VALUES: LuaValues = {
  FENCE_TTL,
  KEPT_PREFIX: KEPT,
  LISTENERS_REFUSED: LISTENERS.refused,
  LISTENERS_UNCOUNTED: LISTENERS.uncounted,
  MOST_AHEAD,
  MOST_SHOWN,
  READ_ONLY: IN_LUA.readOnly,
  WRONG_TYPE: IN_LUA.wrongType,
};

/** Makes the text of a script, or of a piece of one: `spring/acquire`. */
export function kindLua(name: string, values: LuaValues = {}): () => string {
  return () => lua(name, { ...VALUES, ...values });
}

/** The three numbers of a `Keep`, as the scripts take them. */
export function keepArguments({ left, minHold, ttl }: Keep): string[] {
  return [String(left), String(minHold), String(ttl)];
}
