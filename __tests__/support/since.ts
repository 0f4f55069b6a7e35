import { describe, it } from '@jest/globals';
import { findRedisBinary, identifyRedis } from '../../support/redis-binary';

const binary = findRedisBinary();
const version = binary === undefined ? '' : identifyRedis(binary).version;

/** Whether the private servers of this run have what came with this version of Redis. Its forks began later than that. */
export function isSince(wanted: `${number}.${number}`): boolean {
  return version.localeCompare(wanted, 'en', { numeric: true }) >= 0;
}

/** `it` for what came with this version: skipped on a server before it. */
export const itSince = (wanted: `${number}.${number}`) => (isSince(wanted) ? it : it.skip);

/** `describe` for what came with this version: skipped on a server before it. */
export const describeSince = (wanted: `${number}.${number}`) => (isSince(wanted) ? describe : describe.skip);

export const HAS_SHARDED_CHANNELS = isSince('7.0');

/** Rules of a user who may publish nothing. A server before 7 has no SPUBLISH, and refuses a rule about it. */
export const MUTE: readonly string[] = HAS_SHARDED_CHANNELS ? ['-publish', '-spublish'] : ['-publish'];

/**
 * The source of a pattern for an error with this code, perhaps in a script: before 7 it comes behind a preamble, which ends
 * with the number of a line.
 */
export const coded = (code: string): string => `(?:(?:ERR .*)?@user_script: \\d+: -)?${code}\\b`;
