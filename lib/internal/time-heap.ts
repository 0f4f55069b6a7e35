/** A member of a heap knows its position there: leaving costs no search. */
export interface Timed {
  /** Kept by the heap. */
  position: number;
}

/**
 * Members by a time, of which the earliest is found at once. Joining and leaving cost O(log n): a binary heap. A member
 * is in one heap at a time at most. Its time stays as it is until it leaves.
 */
export class TimeHeap<T extends Timed> {
  readonly #members: T[] = [];
  /** The times of the members, in a separate array: numbers in objects would be allocated one by one. */
  readonly #times: number[] = [];

  get first(): T | undefined {
    return this.#members[0];
  }

  /** The time of the first member; `Infinity` without one. */
  get earliest(): number {
    return this.#times[0] ?? Number.POSITIVE_INFINITY;
  }

  /** In no particular order. The array is a copy. */
  get members(): T[] {
    return [...this.#members];
  }

  add(member: T, time: number): void {
    this.#rise(this.#members.length, member, time);
  }

  has(member: T): boolean {
    // V8 is slow to find out that an array has nothing at -1.
    return member.position >= 0 && this.#members[member.position] === member;
  }

  /** Of a member of this heap. */
  timeOf(member: T): number {
    return this.#times[member.position] as number;
  }

  /** Does nothing for a member that is not in this heap. */
  remove(member: T): void {
    if (!this.has(member)) return;
    const { position } = member;
    member.position = -1;
    const last = this.#members.pop() as T;
    const time = this.#times.pop() as number;
    if (position === this.#members.length) return;
    const above = this.#times[(position - 1) >> 1];
    if (position > 0 && time < (above as number)) this.#rise(position, last, time);
    else this.#sink(position, last, time);
  }

  /** Puts a member at the position, or above it. */
  #rise(position: number, member: T, time: number): void {
    let at = position;
    while (at > 0) {
      const above = (at - 1) >> 1;
      if ((this.#times[above] as number) <= time) break;
      this.#put(at, this.#members[above] as T, this.#times[above] as number);
      at = above;
    }
    this.#put(at, member, time);
  }

  /** Puts a member at the position, or below it. */
  #sink(position: number, member: T, time: number): void {
    const { length } = this.#members;
    let at = position;
    for (let below = 2 * at + 1; below < length; below = 2 * at + 1) {
      if (below + 1 < length && (this.#times[below + 1] as number) < (this.#times[below] as number)) below++;
      if (time <= (this.#times[below] as number)) break;
      this.#put(at, this.#members[below] as T, this.#times[below] as number);
      at = below;
    }
    this.#put(at, member, time);
  }

  #put(at: number, member: T, time: number): void {
    this.#members[at] = member;
    this.#times[at] = time;
    member.position = at;
  }
}
