import { mark } from '../inspection/forced-unlock';

/** As `ifForced`, where the mark has the owners of several leases, with spaces between them. */
export const ifForcedAmong = (owner: string, then: string, lock = 'KEYS[1]') => `${mark(lock)}
local marked = redis.pcall('GET', mark)
if type(marked) == 'string' and string.find(' ' .. marked .. ' ', ' ' .. ${owner} .. ' ', 1, true) then ${then} end`;
