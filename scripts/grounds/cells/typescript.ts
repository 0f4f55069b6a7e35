import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type Cell, check } from '../cell';
import { installUser } from '../folder';
import { runProgram } from '../program';
import { CLIENTS } from '../versions';

const VERSIONS = ['5.2.2', '5.5.4', '5.9.3', '6.0.3', '7.0.2'];

/** Whatever has types that ours name: without `skipLibCheck` they are checked too. */
const PACKAGES = {
  ...CLIENTS['redis-6'],
  ...CLIENTS['ioredis-6'],
  ...CLIENTS.iovalkey,
  ...CLIENTS['valkey-glide'],
  ...CLIENTS.upstash,
  '@nestjs/common': '11.2.10',
  '@opentelemetry/api': '1.9.1',
  '@types/node': '20.19.43',
  'node-cron': '4.6.0',
  'reflect-metadata': '0.2.2',
  rxjs: '7.8.2',
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
export const typescriptCells: readonly Cell[] = VERSIONS.map((version) => ({
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
