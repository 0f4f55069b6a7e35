/**
 * Sets `left`: ms for which the key is kept from now on. ARGV[first]: the three numbers of a `Keep`.
 *
 * What is left of the key's ttl shows how long ago the key was given it, by the server's clock. That is more exact than
 * the local clock, since no time passes on the way. But a key that was renewed looks younger than it is. The local clock
 * counts too little if the machine was suspended, or slow to read the grant. Both estimates can be too long, never too
 * short; the smaller one is used. `age`: Lua that finds the age of the grant in ms, where it shows otherwise.
 */
export const leftToKeep = (first: number, age?: string) => `
local left, remaining = tonumber(ARGV[${first}]), redis.call('PTTL', KEYS[1])
local age = ${age === undefined ? '' : `${age} or `}remaining >= 0 and ARGV[${first + 2}] - remaining
if age then left = math.min(left, ARGV[${first + 1}] - age) end
left = string.format('%.0f', math.max(1, math.ceil(left)))`;
