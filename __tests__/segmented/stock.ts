import { beforeEach } from '@jest/globals';
import { type Lease, type Segment, SegmentedLock } from '../../lib';
import { seeded } from '../../support/random';
import { LocalRegistry } from './local-registry';

/** The indices of the segments. */
export const ALL = [0, 1, 2, 3, 4, 5, 6, 7];

/** A task that any segment can serve. */
export const serve = ({ index }: Segment): number => index;

/** For each test, a segmented lock of eight segments without Redis. */
export class Stock {
  registry = new LocalRegistry();
  lock = this.#lock();

  /** Registers the hook that makes a new one for each test. */
  static install(): Stock {
    const stock = new Stock();
    beforeEach(() => {
      stock.registry = new LocalRegistry();
      stock.lock = stock.#lock();
    });
    return stock;
  }

  /** Takes the locks of these segments, as another caller. */
  hold(...indices: number[]): Promise<Lease[]> {
    return Promise.all(indices.map((index) => this.registry.obtain(`stock:${index}`).lock()));
  }

  #lock(): SegmentedLock {
    return new SegmentedLock(this.registry, 'stock', { segments: ALL.length, random: seeded(1) });
  }
}
