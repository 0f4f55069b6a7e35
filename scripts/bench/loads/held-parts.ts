import { getHeapSnapshot } from 'node:v8';
import type { Locks } from '../candidates/candidate';
import type { Observe } from './load';

/** Objects of one kind. */
export interface HeapPart {
  readonly name: string;
  readonly count: number;
  readonly bytes: number;
}

/** Keeps the measured objects reachable until the process ends. */
const kept: unknown[] = [];

/** What each held lock is made of: the objects of the heap by kind, after a garbage collection. */
export function heldParts(locks: Locks, { locks: count }: { readonly locks: number }): Observe {
  return async () => {
    // The names belong to the caller: they are allocated first and are not measured.
    const [warm, held] = [namesOf('warm', count), namesOf('held', count)];
    for (let i = 0; i < 2; i++) {
      const releases = await Promise.all(warm.map((key) => locks.acquire(key)));
      await Promise.all(releases.map((release) => release()));
    }
    await partsOfHeap(); // what the first snapshot leaves behind is not measured
    const before = await partsOfHeap();
    kept.push(await Promise.all(held.map((key) => locks.acquire(key))));
    const after = await partsOfHeap();
    const parts = [...after].map(([name, { count: countAfter, bytes }]) => ({
      name,
      count: (countAfter - (before.get(name)?.count ?? 0)) / count,
      bytes: (bytes - (before.get(name)?.bytes ?? 0)) / count,
    }));
    return { parts: parts.filter(({ bytes }) => bytes >= 1).sort((a, b) => b.bytes - a.bytes) };
  };
}

/** Each is one piece in memory, as V8 would make it of a concatenation when it is sent. */
function namesOf(kind: string, count: number): string[] {
  return JSON.parse(JSON.stringify(Array.from({ length: count }, (_, i) => `${kind}-${i}`)));
}

interface Snapshot {
  readonly snapshot: {
    readonly meta: { readonly node_fields: readonly string[]; readonly node_types: readonly [readonly string[]] };
  };
  readonly nodes: readonly number[];
  readonly strings: readonly string[];
}

async function partsOfHeap(): Promise<Map<string, { count: number; bytes: number }>> {
  const chunks: Buffer[] = [];
  for await (const chunk of getHeapSnapshot()) chunks.push(chunk as Buffer);
  const { snapshot, nodes, strings } = JSON.parse(Buffer.concat(chunks).toString()) as Snapshot;
  const { node_fields: fields, node_types: types } = snapshot.meta;
  const [type, name, size] = ['type', 'name', 'self_size'].map((field) => fields.indexOf(field)) as [
    number,
    number,
    number,
  ];
  const parts = new Map<string, { count: number; bytes: number }>();
  for (let at = 0; at < nodes.length; at += fields.length) {
    const kind = kindOf(types[0][nodes[at + type] as number] as string, strings[nodes[at + name] as number] as string);
    const part = parts.get(kind) ?? { count: 0, bytes: 0 };
    part.count++;
    part.bytes += nodes[at + size] as number;
    parts.set(kind, part);
  }
  return parts;
}

function kindOf(type: string, name: string): string {
  if (type === 'object' || type === 'native') return name;
  if (type === 'closure') return `closure ${name || '(anonymous)'}`;
  if (type.includes('string')) return '(string)';
  return type === 'array' ? '(array)' : `(${type})`;
}
