import { parseArgs } from 'node:util';
import { LOCK_TYPES, type LockType } from '../../lib/protocols/lock-types';

export interface Options {
  /** Binaries, or folders with binaries. Empty: those on the PATH. */
  readonly servers: readonly string[];
  readonly types: readonly LockType[];
  /** Parts of the names of test files. Empty: all. */
  readonly clients: readonly string[];
  readonly page: boolean;
}

export const usage = `npm run test:servers -- [options]
  --server PATH   a server binary, or a folder with some; may be repeated. Default: those on the PATH
  --type TYPE     only this type of lock; may be repeated: ${LOCK_TYPES.join(', ')}
  --client NAME   only clients whose test file has this in its name (ioredis, cluster, pool); may be repeated
  --page          writes docs/compatibility.md, from this run and the kept results of earlier ones`;

export class UsageError extends Error {}

/** `undefined` for --help. */
export function readOptions(args: readonly string[]): Options | undefined {
  const { values } = parse(args);
  if (values.help) return undefined;
  const types = values.type ?? [];
  for (const type of types) {
    if (!LOCK_TYPES.includes(type as LockType)) throw new UsageError(`There is no type of lock "${type}"`);
  }
  return {
    servers: values.server ?? [],
    types: types.length === 0 ? LOCK_TYPES : (types as LockType[]),
    clients: values.client ?? [],
    page: values.page ?? false,
  };
}

function parse(args: readonly string[]) {
  try {
    return parseArgs({
      args: [...args],
      options: {
        server: { type: 'string', multiple: true },
        type: { type: 'string', multiple: true },
        client: { type: 'string', multiple: true },
        page: { type: 'boolean' },
        help: { type: 'boolean', short: 'h' },
      },
    });
  } catch (error) {
    throw new UsageError((error as Error).message);
  }
}
