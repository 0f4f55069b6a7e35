/** The states of a kind of thing that has a life: for each, the states that may follow on it. */
export class States<S extends string> {
  /** The states of all kinds. */
  static readonly all: States<string>[] = [];
  /** Called at each change of state: the simulation counts them. */
  static onChange: ((kind: string, from: string, to: string) => void) | undefined;

  readonly kind: string;
  readonly following: Readonly<Record<S, readonly S[]>>;

  constructor(kind: string, following: Readonly<Record<S, readonly NoInfer<S>[]>>) {
    this.kind = kind;
    this.following = following;
    States.all.push(this as States<string>);
  }

  /** Returns `to`. Throws where it must not follow on `from`: a mistake of the library, which is to be seen at once. */
  change(from: S, to: S): S {
    if (!this.following[from].includes(to)) throw new Error(`A ${this.kind} that is ${from} cannot be ${to} next`);
    States.onChange?.(this.kind, from, to);
    return to;
  }
}
