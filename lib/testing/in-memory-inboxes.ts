import { holderOf } from '../api/owner-name';
import { clock } from '../internal/clock';

/** The inboxes of registries with locks in memory. */
export class InMemoryInboxes {
  /** By the part of an owner value that is that of its registry. */
  readonly #open = new Map<string, (message: string) => void>();

  /** For the registry with this owner value. Returns what closes it. */
  open(owner: string, receive: (message: string) => void): () => void {
    const id = idIn(owner);
    this.#open.set(id, receive);
    return () => this.#open.delete(id);
  }

  /** Whether the registry of this owner value hears it: after what answers the sender, as from another connection. */
  tell(owner: string, message: string): boolean {
    const receive = this.#open.get(idIn(owner));
    if (receive !== undefined) void clock.immediate().then(() => receive(message));
    return receive !== undefined;
  }
}

function idIn(owner: string): string {
  const holder = holderOf(owner);
  return holder.slice(0, holder.lastIndexOf(':'));
}
