import type { Keep } from '../../core/protocol';

/** As the scripts take it. */
export function keepArguments({ left, minHold, ttl }: Keep): string[] {
  return [String(left), String(minHold), String(ttl)];
}

/**
 * Sets `left`: ms for which the key is kept from now on. `keepFor`, `minHold`, `ttl`: the numbers of a `Keep`, in Lua.
 *
 * What is left of the key's ttl shows how long ago the key was given it, by the server's clock. That is more exact than
 * the local clock, since no time passes on the way. A renewal makes the key look younger: this estimate is too long
 * then. The local clock misses a suspension of the machine, and the time in which a grant was not read: its estimate is
 * too long then. Neither is ever too short, so the smaller one is used. `age`: Lua that finds the age of the grant in
 * ms, where it shows otherwise.
 */
export const leftToKeep = (keepFor: string, minHold: string, ttl: string, age?: string) => `
local left, remaining = tonumber(${keepFor}), redis.call('PTTL', KEYS[1])
local age = ${age === undefined ? '' : `${age} or `}remaining >= 0 and ${ttl} - remaining
if age then left = math.min(left, ${minHold} - age) end
left = string.format('%.0f', math.max(1, math.ceil(left)))`;
