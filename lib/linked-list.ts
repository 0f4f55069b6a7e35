/** What stands in a list carries its own links: to join and to leave costs no search and no allocation. */
export interface Linked<T> {
  previous: T | undefined;
  next: T | undefined;
}

/**
 * Members in the order in which they joined, each of which can leave at any time.
 *
 * In place of a Set or Map for what comes and goes quickly: theirs are copied again and again, and V8 keeps what stood in
 * the old copies until the next full garbage collection.
 */
export class LinkedList<T extends Linked<T>> {
  #first: T | undefined;
  #last: T | undefined;

  get first(): T | undefined {
    return this.#first;
  }

  get last(): T | undefined {
    return this.#last;
  }

  append(member: T): void {
    member.previous = this.#last;
    if (this.#last === undefined) this.#first = member;
    else this.#last.next = member;
    this.#last = member;
  }

  /** The member at hand may leave meanwhile, and no other. */
  *[Symbol.iterator](): IterableIterator<T> {
    for (let member = this.#first; member !== undefined; ) {
      const { next } = member;
      yield member;
      member = next;
    }
  }

  /** Does nothing for one who is in no list. */
  remove(member: T): void {
    if (member.previous === undefined && this.#first !== member) return;
    if (member.previous === undefined) this.#first = member.next;
    else member.previous.next = member.next;
    if (member.next === undefined) this.#last = member.previous;
    else member.next.previous = member.previous;
    member.previous = undefined;
    member.next = undefined;
  }
}
