/** Samples of CPU time, by whose code it is and by function. */
export interface Shares {
  readonly byOwner: Readonly<Record<string, number>>;
  readonly byFunction: Readonly<Record<string, number>>;
}

/** A call frame of a profile of V8, and those that it called. */
export interface FrameNode {
  readonly name: string;
  /** The path of its source. Empty for what is not JavaScript. */
  readonly source: string;
  /** Samples of the frame itself. */
  readonly self: number;
  readonly callees: readonly FrameNode[];
}

/** Sums by whose code it is. What runs below a builtin counts for the function that called the builtin. */
export function sharesOf(root: FrameNode): Shares {
  const byOwner: Record<string, number> = {};
  const byFunction: Record<string, number> = {};
  const visit = ({ name, source, self, callees }: FrameNode, caller: string, calledBy: string): void => {
    const owner = ownerOf(name, source) ?? caller;
    const counted = source === '' ? calledBy : `${shortened(source)} ${name}`;
    if (owner !== NOBODY && self > 0) {
      byOwner[owner] = (byOwner[owner] ?? 0) + self;
      byFunction[counted] = (byFunction[counted] ?? 0) + self;
    }
    for (const callee of callees) visit(callee, owner === NOBODY ? caller : owner, counted);
  };
  visit(root, NODE, '');
  return { byOwner, byFunction };
}

/** From the folder of a package, or of this project. */
function shortened(path: string): string {
  return path.replace(/^.*\/node_modules\/(?!\.cache)|^.*\/(?=(lib|scripts)\/)/, '');
}

const NODE = 'Node: the rest';
const KERNEL = 'kernel, and C++ of Node';
const COLLECTION = 'garbage collection';
/** The process was idle. */
const NOBODY = 'nobody';

/** By their order: the first pattern that a path matches decides. */
const OWNERS: readonly (readonly [RegExp, string])[] = [
  [/^node:(internal\/)?(net|stream|streams|stream_base_commons|buffer|events|string_decoder)(\/|$)/, 'Node: sockets'],
  [/^node:(internal\/)?(timers|process\/|async_hooks|promise_hooks)/, 'Node: promises, timers'],
  [/^node:/, NODE],
  [/\/node_modules\/async-mutex\//, 'async-mutex'],
  [/\/node_modules\/(@redis|redis|ioredis)\//, 'the client'],
  [/\/scripts\/bench\/floors/, 'the floor itself'],
  [/\/scripts\/bench\/(?!node_modules)/, 'the load of the bench'],
  [/\/node_modules\/(?!\.cache)/, NODE],
  [/\/lib\/core\//, 'this library: core'],
  [/\/lib\/protocols\//, 'this library: protocols'],
  [/\/lib\/redis\//, 'this library: redis'],
  [/\/lib\//, 'this library: the rest'],
];

/** Functions of Node's C++ that call the kernel. V8 shows no frame of the kernel itself. */
const KERNEL_CALLS = /^(writev|writeBuffer|write(Utf8|Latin1|Ascii|Ucs2)String|shutdown|connect|readStart|readStop)$/;

/** Of a builtin: `undefined`, its time belongs to the function that called it. */
export function ownerOf(name: string, source: string): string | undefined {
  if (source !== '') return OWNERS.find(([pattern]) => pattern.test(source))?.[1] ?? NODE;
  if (name === '(idle)' || name === '(root)') return NOBODY;
  if (name === '(garbage collector)') return COLLECTION;
  return name === '(program)' || KERNEL_CALLS.test(name) ? KERNEL : undefined;
}
