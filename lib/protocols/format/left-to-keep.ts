import type { Keep } from '../../core/protocol';

/** As the scripts take it. */
export function keepArguments({ left, minHold, ttl }: Keep): string[] {
  return [String(left), String(minHold), String(ttl)];
}

/**
 * Sets `left`: ms for which the key is kept from now on. ARGV[first]: the three numbers of a `Keep`.
 *
 * What is left of the key's ttl shows how long ago the key was given it, by the server's clock. That is more exact than
 * the local clock, since no time passes on the way. A renewal makes the key look younger: this estimate is too long
 * then. The local clock misses a suspension of the machine, and the time in which a grant was not read: its estimate is
 * too long then. Neither is ever too short, so the smaller one is used. `age`: Lua that finds the age of the grant in
 * ms, where it shows otherwise.
 */
export const leftToKeep = (first: number, age?: string) => `
local left, remaining = tonumber(ARGV[${first}]), redis.call('PTTL', KEYS[1])
local age = ${age === undefined ? '' : `${age} or `}remaining >= 0 and ARGV[${first + 2}] - remaining
if age then left = math.min(left, ARGV[${first + 1}] - age) end
left = string.format('%.0f', math.max(1, math.ceil(left)))`;
