import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type Cell, check } from '../../../support/grounds/cell';
import { installUser } from '../folder';
import { runProgram } from '../program';
import { CLIENTS, NESTS, NODE_CRON, NODE_TYPES, OPENTELEMETRY, REFLECT_METADATA, RXJS, TYPESCRIPTS } from '../versions';

/** Whatever has types that ours name: without `skipLibCheck` they are checked too. */
const PACKAGES = {
  ...CLIENTS['redis-6'],
  ...CLIENTS['ioredis-6'],
  ...CLIENTS.iovalkey,
  ...CLIENTS['valkey-glide'],
  ...CLIENTS.upstash,
  '@nestjs/common': NESTS[11].nest,
  '@opentelemetry/api': OPENTELEMETRY,
  '@types/node': NODE_TYPES,
  'node-cron': NODE_CRON,
  'reflect-metadata': REFLECT_METADATA,
  rxjs: RXJS,
};

const strict = {
  target: 'es2022',
  lib: ['es2022', 'esnext.disposable'],
  types: ['node'],
  strict: true,
  exactOptionalPropertyTypes: true,
  noUncheckedIndexedAccess: true,
  noPropertyAccessFromIndexSignature: true,
  skipLibCheck: false,
  noEmit: true,
};
/** With other settings than those of Node, types of valkey-glide itself are wrong for older versions. */
const NOT_OURS = /^node_modules\/@valkey\/valkey-glide\/.*\bTS2709\b.*\n/gm;
const HAS_THEM = ['5.2.2', '5.5.4'];

const MODULES = {
  nodenext: { module: 'nodenext' },
  bundler: { module: 'esnext', moduleResolution: 'bundler' },
};

/** Each version compiles what uses every entry point and every adapter. */
export const typescriptCells: readonly Cell[] = TYPESCRIPTS.map((version) => ({
  name: `typescript/typescript-${version.split('.', 2).join('.')}`,
  ground: 'typescript',
  title: `TypeScript ${version}, strict, without \`skipLibCheck\``,
  through: `nodenext and bundler${HAS_THEM.includes(version) ? ", where valkey-glide's own types have errors" : ''}`,
  limit: 300_000,
  run: async (report) => {
    const folder = await installUser(`typescript-${version}`, { ...PACKAGES, typescript: version });
    for (const [name, module] of Object.entries(MODULES))
      await check(report, `${name}: no error`, async () => {
        const config = { compilerOptions: { ...strict, ...module }, files: ['types.mts'] };
        await writeFile(join(folder, 'tsconfig.json'), JSON.stringify(config));
        const compiled = runProgram([process.execPath, 'node_modules/typescript/bin/tsc'], folder);
        await compiled.catch((error: Error) => {
          const left = HAS_THEM.includes(version) ? `${error.message}\n`.replaceAll(NOT_OURS, '') : error.message;
          if (left !== '') throw new Error(left);
        });
      });
    return undefined;
  },
}));
