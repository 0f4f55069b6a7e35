import { describe, expect, it } from '@jest/globals';
import { decideHandOver, localSuccessor } from '../../lib/acquire/hand-over-decision';

describe('At an unlock', () => {
  it.each([
    ['goes to the next local caller', false, undefined, 'next'],
    ['goes to nobody with handOver: 0', false, 0, undefined],
    ['goes to nobody before its minHold has ended', true, undefined, undefined],
  ] as const)('the lock %s', (_, mustKeep, slice, successor) => {
    expect(localSuccessor('next', mustKeep, slice)).toBe(successor);
  });

  it.each([
    ['within the slice', 'hand over', false, false, true],
    ['within the slice, if listeners cannot be counted', 'hand over', false, false, false],
    ['at the end of the slice', 'hand over unless others listen', false, true, true],
    ['at the end of the slice, if listeners cannot be counted', 'release', false, true, false],
    ['when a pause is due', 'leave to pollers', true, false, true],
    ['when a pause is due at the end of the slice', 'leave to pollers', true, true, true],
  ] as const)('%s the decision is: %s', (_, decision, isPauseDue, isSliceOver, canCountListeners) => {
    expect(decideHandOver(isPauseDue, isSliceOver, canCountListeners)).toBe(decision);
  });
});
