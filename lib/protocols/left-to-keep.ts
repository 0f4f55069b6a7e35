/**
 * Sets `left`: ms for which the key is kept from now on. ARGV[first]: the three numbers of a `Keep`.
 *
 * What the key still has to live tells how long ago it was given its ttl, by the server's clock: more exactly than the
 * local clock, since no time passes on the way. A key that was renewed looks younger than it is. A machine that was
 * suspended, or slow to read the grant, counts too little. So both ways may find too much, never too little, and the
 * smaller one counts. `age`: Lua that finds the age of the grant in ms, where it shows otherwise.
 */
export const leftToKeep = (first: number, age?: string) => `
local left, life = tonumber(ARGV[${first}]), redis.call('PTTL', KEYS[1])
local age = ${age === undefined ? '' : `${age} or `}life >= 0 and ARGV[${first + 2}] - life
if age then left = math.min(left, ARGV[${first + 1}] - age) end
left = string.format('%.0f', math.max(1, math.ceil(left)))`;
