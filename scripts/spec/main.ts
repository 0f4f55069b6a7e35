/** `npm run spec`: exit code 0 when TLC finds what it should find; 1 when not; 2 for a wrong option. */

import { parseArgs } from 'node:util';
import Table from 'cli-table3';
import { runMain } from '../../support/run-main';
import { MODELS, type Model } from './models';
import { taskOf } from './modules';
import { runTlc, tlcJar, type Verdict } from './tlc';
import { VARIANTS, type Variant } from './variants';

const USAGE = `npm run spec -- [options]
  --small         small models and the variants that they refute: a part of all, for every change
  --large         also the large models, which take some minutes each
  --only TEXT     models and variants whose name contains it
  --output        print what TLC printed`;

const style = { head: [], border: [] };

function readOptions() {
  const { values } = parseArgs({
    options: {
      small: { type: 'boolean', default: false },
      large: { type: 'boolean', default: false },
      only: { type: 'string', default: '' },
      output: { type: 'boolean', default: false },
      help: { type: 'boolean', default: false },
    },
  });
  return values;
}

type Options = ReturnType<typeof readOptions>;

function isWanted(size: 'small' | 'medium' | 'large', { small, large }: Options): boolean {
  return size === 'small' || (size === 'medium' && !small) || (size === 'large' && large);
}

function modelOf({ model, constants }: Variant): Model {
  const found = MODELS[model];
  if (found === undefined) throw new Error(`There is no model "${model}"`);
  return { ...found, constants: { ...found.constants, ...constants } };
}

function cells({ states, seconds }: Verdict): string[] {
  return [states.toLocaleString('en-US'), seconds.toFixed(0)];
}

/** Returns how many were wrong. */
async function checkModels(options: Options): Promise<number> {
  const table = new Table({ head: ['model', 'module', 'bounds', 'states', 's', 'refuted'], style });
  let wrong = 0;
  const wanted = Object.entries(MODELS).filter(
    ([name, { size }]) => isWanted(size, options) && name.includes(options.only),
  );
  for (const [name, model] of wanted) {
    const verdict = await runTlc(taskOf(model));
    if (options.output || verdict.refuted !== undefined) console.log(verdict.output);
    if (verdict.refuted !== undefined) wrong++;
    table.push([name, model.module, model.bounds, ...cells(verdict), verdict.refuted ?? 'nothing']);
  }
  if (wanted.length > 0) console.log(table.toString());
  return wrong;
}

async function checkVariants(options: Options): Promise<number> {
  const table = new Table({ head: ['wrong variant', 'module', 'states', 's', 'refuted'], style });
  let wrong = 0;
  const wanted = VARIANTS.filter(
    ({ name, model, isSlow }) =>
      isWanted(MODELS[model]?.size ?? 'large', options) && !(isSlow && options.small) && name.includes(options.only),
  );
  for (const variant of wanted) {
    const { name, replacements, refutes } = variant;
    const model = modelOf(variant);
    const verdict = await runTlc(taskOf(model, replacements));
    const isRefuted = verdict.refuted === refutes;
    if (options.output) console.log(verdict.output);
    if (!isRefuted) {
      wrong++;
      console.log(`"${name}": TLC should refute ${refutes}, and refuted ${verdict.refuted ?? 'nothing'}`);
    }
    table.push([name, model.module, ...cells(verdict), verdict.refuted ?? 'NOTHING']);
  }
  if (wanted.length > 0) console.log(table.toString());
  return wrong;
}

async function main(): Promise<number> {
  const options = readOptions();
  if (options.help) {
    console.log(USAGE);
    return 0;
  }
  tlcJar();
  const startedAt = Date.now();
  const wrong = (await checkModels(options)) + (await checkVariants(options));
  console.log(
    `${wrong === 0 ? 'All is as it should be' : `${wrong} not as it should be`}, after ${Math.round((Date.now() - startedAt) / 1_000)} s`,
  );
  return wrong === 0 ? 0 : 1;
}

void runMain(main);
