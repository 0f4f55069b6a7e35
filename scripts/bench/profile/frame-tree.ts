import { type CallFrame, type Owner, ownerOf } from './owners';

/** A call frame of a profile of V8, of CPU or of allocations, and those that it called. */
export interface FrameNode {
  readonly frame: CallFrame & { readonly lineNumber: number; readonly columnNumber: number };
  /** Samples, or bytes, of the frame itself. */
  readonly self: number;
  readonly callees: readonly FrameNode[];
}

/** Sums of `self`: by owner, and by function for the owners that are asked for. */
export class Shares {
  readonly byOwner = new Map<Owner, number>();
  /** `lib/core/wait.ts Wait`: of the library and the floors. */
  readonly byFunction = new Map<string, number>();

  /** Adds a tree. `sourceOf` returns the path of the source of a frame. */
  add(root: FrameNode, sourceOf: (frame: FrameNode['frame']) => string): void {
    this.#visit(root, sourceOf, 'node', '');
  }

  get total(): number {
    return [...this.byOwner.values()].reduce((sum, self) => sum + self, 0);
  }

  /** `caller`, `calledBy`: the owner and the function that a builtin below this frame counts for. */
  #visit(
    { frame, self, callees }: FrameNode,
    sourceOf: (frame: FrameNode['frame']) => string,
    caller: Owner,
    calledBy: string,
  ) {
    const url = sourceOf(frame);
    const found = ownerOf({ functionName: frame.functionName, url });
    const owner = found === 'caller' ? caller : found;
    const name = url === '' ? calledBy : `${shortened(url)} ${frame.functionName}`;
    if (owner !== 'nobody' && self > 0) {
      increase(this.byOwner, owner, self);
      increase(this.byFunction, name, self);
    }
    for (const callee of callees) this.#visit(callee, sourceOf, owner === 'nobody' ? caller : owner, name);
  }
}

/** From the folder of a package, or of this project. */
function shortened(path: string): string {
  return path.replace(/^.*\/node_modules\/|^.*\/(?=(lib|scripts)\/)/, '');
}

function increase<Key>(sums: Map<Key, number>, key: Key, by: number): void {
  sums.set(key, (sums.get(key) ?? 0) + by);
}
