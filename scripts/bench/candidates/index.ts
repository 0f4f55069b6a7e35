import type { Candidate, NodeCandidate } from './candidate';
import { floor } from './floor';
import { floorEvalSha } from './floor-evalsha';
import { floorFair } from './floor-fair';
import { floorFifo } from './floor-fifo';
import { floorHandOver } from './floor-hand-over';
import { floorToken } from './floor-token';
import { floorWait } from './floor-wait';
import { nodeRedisson } from './node-redisson';
import { otherLanguages } from './other-languages';
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
const nodeCandidates: readonly NodeCandidate[] = [
  floor,
  floorEvalSha,
  floorFifo,
  floorHandOver,
  floorToken,
  floorFair,
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

export const candidates: readonly Candidate[] = [...nodeCandidates, ...otherLanguages];

/** For a worker process in Node. */
export function nodeCandidate(id: string): NodeCandidate {
  const found = nodeCandidates.find((one) => one.id === id);
  if (found === undefined) throw new Error(`There is no candidate "${id}"`);
  return found;
}
