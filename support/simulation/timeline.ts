interface Entry {
  readonly time: number;
  readonly sequence: number;
  run: (() => void) | undefined;
}

/** Takes an event back. */
export type Cancel = () => void;

/** Virtual time in ms, and the events to come in the order of their times; of one time, in the order they were made. */
export class Timeline {
  now = 0;
  #sequence = 0;
  readonly #heap: Entry[] = [];

  at(time: number, run: () => void): Cancel {
    const entry: Entry = { time: Math.max(time, this.now), sequence: this.#sequence++, run };
    this.#push(entry);
    return () => {
      entry.run = undefined;
    };
  }

  after(ms: number, run: () => void): Cancel {
    return this.at(this.now + ms, run);
  }

  /** Runs the next event; false when there is none. */
  step(): boolean {
    for (let entry = this.#pop(); entry !== undefined; entry = this.#pop()) {
      const { run } = entry;
      if (run === undefined) continue;
      this.now = entry.time;
      run();
      return true;
    }
    return false;
  }

  #push(entry: Entry): void {
    const heap = this.#heap;
    let at = heap.push(entry) - 1;
    while (at > 0) {
      const parent = (at - 1) >> 1;
      if (isBefore(heap[parent] as Entry, entry)) break;
      heap[at] = heap[parent] as Entry;
      at = parent;
    }
    heap[at] = entry;
  }

  #pop(): Entry | undefined {
    const heap = this.#heap;
    const first = heap[0];
    const last = heap.pop();
    if (first === undefined || last === undefined || heap.length === 0) return first;
    let at = 0;
    for (;;) {
      let child = 2 * at + 1;
      if (child >= heap.length) break;
      if (child + 1 < heap.length && isBefore(heap[child + 1] as Entry, heap[child] as Entry)) child++;
      if (isBefore(last, heap[child] as Entry)) break;
      heap[at] = heap[child] as Entry;
      at = child;
    }
    heap[at] = last;
    return first;
  }
}

function isBefore(one: Entry, other: Entry): boolean {
  return one.time < other.time || (one.time === other.time && one.sequence < other.sequence);
}
