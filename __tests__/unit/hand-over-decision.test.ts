import { describe, expect, it } from '@jest/globals';
import { decideHandOver } from '../../lib/acquire/hand-over-decision';

describe('At an unlock', () => {
  it.each([
    ['within the slice', 'hand over', false, false, true],
    ['within the slice, if listeners cannot be counted', 'hand over', false, false, false],
    ['at the end of the slice', 'hand over unless others listen', false, true, true],
    ['at the end of the slice, if listeners cannot be counted', 'release at the end of the slice', false, true, false],
    ['when a pause is due', 'leave to pollers', true, false, true],
    ['when a pause is due at the end of the slice', 'leave to pollers', true, true, true],
  ] as const)('%s the decision is: %s', (_, decision, isPauseDue, isSliceOver, canCountListeners) => {
    expect(decideHandOver(true, isPauseDue, isSliceOver, canCountListeners)).toBe(decision);
  });

  it('with handOver: 0 the decision is always: release', () => {
    expect(decideHandOver(false, true, true, true)).toBe('release');
  });
});
