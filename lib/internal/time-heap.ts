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
    this.#place(this.#members.length, member, time);
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
    if (last !== member) this.#place(position, last, time);
  }

  /** Puts a member at this free position, or where those above or below it leave it a place. */
  #place(position: number, member: T, time: number): void {
    const times = this.#times;
    let at = position;
    for (let above = (at - 1) >> 1; at > 0 && (times[above] as number) > time; above = (at - 1) >> 1) {
      at = this.#move(above, at);
    }
    for (let below = 2 * at + 1; below < times.length; below = 2 * at + 1) {
      if ((times[below + 1] ?? Number.POSITIVE_INFINITY) < (times[below] as number)) below++;
      if (time <= (times[below] as number)) break;
      at = this.#move(below, at);
    }
    this.#put(at, member, time);
  }

  #move(from: number, to: number): number {
    this.#put(to, this.#members[from] as T, this.#times[from] as number);
    return from;
  }

  #put(at: number, member: T, time: number): void {
    this.#members[at] = member;
    this.#times[at] = time;
    member.position = at;
  }
}
