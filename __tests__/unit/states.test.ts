import { readFileSync } from 'node:fs';
import path from 'node:path';
import { expect, it } from '@jest/globals';
import '../../lib';
import { States } from '../../lib/internal/states';
import { StateChanges } from '../../support/simulation/state-changes';

it('docs/architecture.md has the states of all that has a life in the library, and what may follow on each', () => {
  const changes = new StateChanges();
  changes.count(States);
  const page = readFileSync(path.resolve(__dirname, '../../docs/architecture.md'), 'utf8');
  // What ends a state is said for people.
  const table = page.replace(/^(\|[^|]+\|[^|]+\|).*$/gm, '$1');
  expect(table).toContain(`\n\n${changes.diagram}\n\n`);
});

it('A change of state that is not in the table throws, and names it', () => {
  const states = new States('lamp', { off: ['on'], on: ['off', 'broken'], broken: [] });
  expect(states.become.on('off')).toBe('on');
  expect(() => states.become.on('broken')).toThrow('A lamp that is broken cannot be on next');
});
