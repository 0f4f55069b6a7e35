import type { Candidate } from './candidate';
import { floor } from './floor';
import { floorEvalSha } from './floor-evalsha';
import { floorFifo } from './floor-fifo';
import { floorHandOver } from './floor-hand-over';
import { floorToken } from './floor-token';
import { floorWait } from './floor-wait';
import { nodeRedisson } from './node-redisson';
import { ourCandidates } from './ours';
import { ourReadWrite } from './read-write';
import { redisSemaphores } from './redis-semaphore';
import { redlock } from './redlock';
import { redlockUniversal } from './redlock-universal';
import { semaphores } from './semaphores';
import { sesameRedlock } from './sesame-redlock';
import { simpleRedisMutex } from './simple-redis-mutex';
import { verrou } from './verrou';

/** A new candidate needs a file in this folder and a line here. */
export const candidates: readonly Candidate[] = [
  floor,
  floorEvalSha,
  floorFifo,
  floorHandOver,
  floorToken,
  floorWait,
  ...ourCandidates,
  redlock,
  sesameRedlock,
  redlockUniversal,
  ...redisSemaphores,
  verrou,
  simpleRedisMutex,
  nodeRedisson,
  ...semaphores,
  ourReadWrite,
];

export function candidate(id: string): Candidate {
  const found = candidates.find((one) => one.id === id);
  if (found === undefined) throw new Error(`There is no candidate "${id}"`);
  return found;
}
