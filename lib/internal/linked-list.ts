/** A member of a linked list carries its own links: joining and leaving costs no search and no allocation. */
export interface Linked<T> {
  previous: T | undefined;
  next: T | undefined;
}

/**
 * Members in the order in which they joined. Each can leave at any time.
 *
 * Used in place of a Set or Map for members that come and go quickly: V8 copies those again and again, and keeps what
 * the old copies referred to until the next full garbage collection.
 */
export class LinkedList<T extends Linked<T>> {
  #first: T | undefined;
  #last: T | undefined;
  #size = 0;

  get first(): T | undefined {
    return this.#first;
  }

  get last(): T | undefined {
    return this.#last;
  }

  get size(): number {
    return this.#size;
  }

  append(member: T): void {
    this.#size++;
    member.previous = this.#last;
    if (this.#last === undefined) this.#first = member;
    else this.#last.next = member;
    this.#last = member;
  }

  /** During the iteration the current member may leave, and no other. */
  *[Symbol.iterator](): IterableIterator<T> {
    for (let member = this.#first; member !== undefined; ) {
      const { next } = member;
      yield member;
      member = next;
    }
  }

  /** Does nothing for a member that is in no list. */
  remove(member: T): void {
    if (member.previous === undefined && this.#first !== member) return;
    this.#size--;
    if (member.previous === undefined) this.#first = member.next;
    else member.previous.next = member.next;
    if (member.next === undefined) this.#last = member.previous;
    else member.next.previous = member.previous;
    member.previous = undefined;
    member.next = undefined;
  }
}
