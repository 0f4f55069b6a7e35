/** The states of a kind of thing that has a life: for each, the states that may follow on it. */
export class States<S extends string> {
  /** The states of all kinds. */
  static readonly all: Pick<States<string>, 'kind' | 'following'>[] = [];
  /** Called at each change of state: the simulation counts them. */
  static onChange: ((kind: string, from: string, to: string) => void) | undefined;

  readonly kind: string;
  readonly following: Readonly<Record<S, readonly S[]>>;
  /**
   * For each state the change to it from the state of now, which returns it. It throws where it must not follow on that:
   * a mistake of the library, which is to be seen at once. One function a state: each call checks a few constants.
   */
  readonly become = {} as { readonly [To in S]: (from: S) => To };

  constructor(kind: string, following: Readonly<Record<S, readonly NoInfer<S>[]>>) {
    this.kind = kind;
    this.following = following;
    const become = this.become as Record<S, (from: S) => S>;
    for (const state of Object.keys(following) as S[]) become[state] = this.#changeTo(state);
    States.all.push(this);
  }

  #changeTo(to: S): (from: S) => S {
    const preceding = (Object.keys(this.following) as S[]).filter((from) => this.following[from].includes(to));
    const [first] = preceding;
    return (from) => {
      // A hand-over would feel the search of a list.
      if (from !== first && !preceding.includes(from))
        throw new Error(`A ${this.kind} that is ${from} cannot be ${to} next`);
      States.onChange?.(this.kind, from, to);
      return to;
    };
  }
}

/** What has to hold when a state begins. `what` says it: where it does not hold, the library has a mistake. */
export function assertAtEntry(holds: boolean, what: string): void {
  if (!holds) throw new Error(what);
}
