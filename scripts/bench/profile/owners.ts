/** Whose code a call frame is. */
export type Owner =
  | 'core'
  | 'protocols'
  | 'redis'
  | 'registry'
  | 'asyncMutex'
  | 'floor'
  | 'encoder'
  | 'parser'
  | 'queue'
  | 'client'
  | 'streams'
  | 'tasks'
  | 'node'
  | 'kernel'
  | 'gc'
  | 'bench';

export type OwnerGroup = 'own' | 'nodeRedis' | 'node' | 'system' | 'bench';

/** In the order of the tables. */
export const OWNERS: Readonly<Record<Owner, { readonly title: string; readonly group: OwnerGroup }>> = {
  core: { title: 'this library: core', group: 'own' },
  protocols: { title: 'this library: protocols', group: 'own' },
  redis: { title: 'this library: redis', group: 'own' },
  registry: { title: 'this library: the rest', group: 'own' },
  asyncMutex: { title: 'async-mutex', group: 'own' },
  floor: { title: 'the floor itself', group: 'own' },
  encoder: { title: 'node-redis: arguments, encoder', group: 'nodeRedis' },
  parser: { title: 'node-redis: parser', group: 'nodeRedis' },
  queue: { title: 'node-redis: queue of commands', group: 'nodeRedis' },
  client: { title: 'node-redis: the rest', group: 'nodeRedis' },
  streams: { title: 'Node: sockets, streams', group: 'node' },
  tasks: { title: 'Node: promises, timers', group: 'node' },
  node: { title: 'Node: the rest', group: 'node' },
  kernel: { title: 'kernel, and C++ of Node', group: 'system' },
  gc: { title: 'garbage collection', group: 'system' },
  bench: { title: 'the load of the bench', group: 'bench' },
};

/** As V8 describes it, with the path of the source in place of that of the built file. */
export interface CallFrame {
  readonly functionName: string;
  /** Empty for what is not JavaScript. */
  readonly url: string;
}

/** Functions of Node's C++ that call the kernel. V8 shows no frame of the kernel itself. */
const KERNEL_CALLS = /^(writev|writeBuffer|write(Utf8|Latin1|Ascii|Ucs2)String|shutdown|connect|readStart|readStop)$/;

const STREAMS = /^node:(internal\/)?(net|stream|streams|stream_base_commons|buffer|events|string_decoder)(\/|$)/;
const TASKS = /^node:(internal\/)?(timers|process\/task_queues|process\/promises|async_hooks|promise_hooks)(\/|$)/;

/** By their order: the first pattern that a path matches decides. */
const SOURCES: readonly (readonly [RegExp, Owner])[] = [
  [STREAMS, 'streams'],
  [TASKS, 'tasks'],
  [/^node:/, 'node'],
  [/\/node_modules\/async-mutex\//, 'asyncMutex'],
  [/\/@redis\/client\/dist\/lib\/(RESP\/encode|client\/parser|commands\/)/, 'encoder'],
  [/\/@redis\/client\/dist\/lib\/RESP\//, 'parser'],
  [/\/@redis\/client\/dist\/lib\/client\/(commands-queue|linked-list)/, 'queue'],
  [/\/node_modules\/(@redis|redis)\//, 'client'],
  [/\/node_modules\//, 'node'],
  [/\/scripts\/bench\/candidates\/(floor|raw-scripts|local-queues)/, 'floor'],
  [/\/scripts\/bench\//, 'bench'],
  [/\/lib\/core\//, 'core'],
  [/\/lib\/protocols\//, 'protocols'],
  [/\/lib\/redis\//, 'redis'],
  [/\/lib\//, 'registry'],
];

/** `caller`: a builtin, whose time belongs to the function that called it. `nobody`: the process was idle. */
export function ownerOf({ functionName, url }: CallFrame): Owner | 'caller' | 'nobody' {
  if (url !== '') return SOURCES.find(([pattern]) => pattern.test(url))?.[1] ?? 'node';
  if (functionName === '(idle)' || functionName === '(root)') return 'nobody';
  if (functionName === '(garbage collector)') return 'gc';
  if (functionName === '(program)' || KERNEL_CALLS.test(functionName)) return 'kernel';
  return 'caller';
}
