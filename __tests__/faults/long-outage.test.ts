import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, it } from '@jest/globals';
import { findRedisBinary } from '../../support/redis-binary';
import { compiled } from '../support/compiled';
import { describePrivate } from '../support/private-redis';

const SECONDS = 20;
const RATE = 500;

describePrivate.each(['spin', 'pub-sub', 'fair', 'redisson-fair'])(
  'an outage under load, with %s locks',
  (lockType) => {
    it.each(['refused', 'silent'])('%s: takes little memory, and leaves little to do', async (kind) => {
      const program = compiled(join(__dirname, '../../scripts/outage.ts'));
      const args = ['--expose-gc', program, kind, lockType, String(SECONDS), String(RATE)];
      const { stdout } = await promisify(execFile)(process.execPath, args, {
        env: { ...process.env, REDIS_SERVER_BIN: findRedisBinary() },
      });
      const { abandoned, outcomes, memory, commands, later, keysLeft, after } = JSON.parse(stdout);
      // On a slow machine there are fewer calls. Too few prove nothing.
      expect(abandoned).toBeGreaterThan((SECONDS * RATE) / 2);
      expect(outcomes).toEqual({ CannotAcquireLockError: abandoned });
      // MB: as many cached locks take half of it.
      expect(memory.heap).toBeLessThan(20);
      expect(commands).toBeLessThan(300);
      expect(later).toBe(0);
      expect(keysLeft).toBe(0);
      expect(after).toBe('ran');
    });
  },
);
