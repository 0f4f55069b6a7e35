import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Model } from './models';
import type { Task } from './tlc';
import type { Replacement } from './variants';

export const FOLDER = join(__dirname, '..', '..', 'docs', 'spec');

/** The text of a module of docs/spec. */
export function moduleText(name: string): string {
  return readFileSync(join(FOLDER, `${name}.tla`), 'utf8');
}

/** Each text to be replaced has to be there, once. */
export function replaceAll(text: string, replacements: readonly Replacement[]): string {
  return replacements.reduce((before, [from, to]) => {
    const count = before.split(from).length - 1;
    if (count !== 1) throw new Error(`Found ${count} times, not once: ${from}`);
    return before.replace(from, () => to);
  }, text);
}

/** What TLC needs to check the model; with other texts or other bounds for a variant. */
export function taskOf(
  { module, constants, definitions = '', invariants, properties = [], constraint, symmetry }: Model,
  replacements: readonly Replacement[] = [],
): Task {
  const main = `MC${module}`;
  const atoms = Object.entries(constants).filter(([name, value]) => name === value);
  const text = `---- MODULE ${main} ----
EXTENDS ${module}, TLC
CONSTANTS ${atoms.map(([name]) => name).join(', ')}
${definitions}
${symmetry === undefined ? '' : `Symmetry == ${symmetry}`}
====
`;
  const configuration = [
    `SPECIFICATION ${module === 'Replace' ? 'SpecReplace' : 'Spec'}`,
    'CONSTANTS',
    ...Object.entries(constants).map(([name, value]) => `  ${name} ${/^[A-Z]\w+s$/.test(value) ? '<-' : '='} ${value}`),
    ...invariants.map((name) => `INVARIANT ${name}`),
    ...properties.map((name) => `PROPERTY ${name}`),
    ...(constraint === undefined ? [] : [`CONSTRAINT ${constraint}`]),
    ...(symmetry === undefined ? [] : ['SYMMETRY Symmetry']),
  ].join('\n');
  const Lease = moduleText('Lease'); // Replace extends it
  const modules = { Lease, [module]: replaceAll(moduleText(module), replacements), [main]: text };
  return { modules, main, configuration };
}
