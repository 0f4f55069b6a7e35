import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { NotToBeHad } from '../../support/grounds/cell';
import { installTools } from './folder';
import { BUN, type ClientName, DENO, NODES } from './versions';

/** What runs the programs of a user. */
export interface Runtime {
  readonly name: string;
  readonly title: string;
  /** The words before the path of a program. Rejects where the runtime cannot be had. */
  command(client: ClientName): Promise<readonly string[]>;
}

const { platform, arch } = process;

/** A binary that a package has. */
async function binary(name: string, packages: Readonly<Record<string, string>>, path: string): Promise<string> {
  const file = join(await installTools(name, packages), 'node_modules', path);
  if (!existsSync(file)) throw new NotToBeHad(`no package has it for ${platform} on ${arch}`);
  return file;
}

export const nodeBinary = (version: string): Promise<string> => {
  const name = `node-${platform === 'win32' ? 'win' : platform}-${arch}`;
  return binary(`node-${version}`, { [name]: version }, `${name}/bin/node`);
};

export const bunBinary = (): Promise<string> => {
  const of = `bun-${platform}-${arch === 'arm64' ? 'aarch64' : arch}`;
  return binary('bun', { bun: BUN }, `@oven/${of}/bin/bun`);
};

export const denoBinary = (): Promise<string> => {
  const of = { linux: `linux-${arch}-glibc`, darwin: `darwin-${arch}` }[platform as string] ?? platform;
  return binary('deno', { deno: DENO }, `@deno/${of}/deno`);
};

export const nodes: readonly Runtime[] = Object.entries(NODES).map(([line, version]) => ({
  name: `node-${line}`,
  title: `Node ${version}`,
  command: async () => [await nodeBinary(version)],
}));

/** What docs/get-started.md gives it, and what docs/frameworks.md adds for valkey-glide, which is machine code. */
const DENO_PERMISSIONS = ['--allow-net', '--allow-env', '--allow-sys=hostname'];
const OF_GLIDE = ['--allow-sys', '--allow-ffi', '--allow-read', '--allow-write'];

export const deno: Runtime = {
  name: 'deno',
  title: `Deno ${DENO}`,
  command: async (client) => {
    const permissions = client === 'valkey-glide' ? ['--allow-net', '--allow-env', ...OF_GLIDE] : DENO_PERMISSIONS;
    return [await denoBinary(), 'run', '--no-prompt', ...permissions];
  },
};

export const bun: Runtime = { name: 'bun', title: `Bun ${BUN}`, command: async () => [await bunBinary()] };

/** What docs/frameworks.md gives it. */
const NODE_PERMISSIONS = ['--permission', '--allow-fs-read=*', '--allow-net', '--disable-warning=ExperimentalWarning'];

const restricted: Runtime = {
  name: 'node-permission',
  title: `Node ${NODES[26]} with \`--permission --allow-fs-read --allow-net\``,
  command: async (client) => {
    const more = client === 'valkey-glide' ? ['--allow-addons', '--disable-warning=PERM0001'] : [];
    return [await nodeBinary(NODES[26]), ...NODE_PERMISSIONS, ...more];
  },
};

export const RUNTIMES: readonly Runtime[] = [...nodes, restricted, deno, bun];
