import type { Redis } from '../redis/client';
import type { Wait } from '../wait';
import type { StrategySettings } from './index';
import type { Claim, Refusal } from './strategy';
import { StringKeyStrategy } from './string-key';

/** Spring's SPIN_LOCK: while another process holds the key, try again every `idleBetweenTries`. Works with every Redis. */
export class SpinStrategy extends StringKeyStrategy {
  readonly #idleBetweenTries: number;

  constructor(redis: Redis, settings: StrategySettings) {
    super(redis, settings);
    this.#idleBetweenTries = settings.idleBetweenTries;
  }

  async wait(_claim: Claim, last: Refusal, wait: Wait): Promise<void> {
    await wait.sleep(pollingInterval(this.#idleBetweenTries, last, wait.remaining));
  }
}

/**
 * Until the next try: `idle`, or less when the holder's key ends before, but at least 1 ms. The last try of a wait is
 * made a little before its end, so that it can still be answered; when there is no time left for one, the rest is slept.
 */
function pollingInterval(idle: number, { remaining, roundTrip }: Refusal, left: number): number {
  const pause = Math.max(1, remaining >= 0 ? Math.min(idle, remaining) : idle);
  const lastTry = left - (2 * roundTrip + 1);
  return lastTry < 1 ? left : Math.min(pause, lastTry);
}
