import { describe, expect, it } from '@jest/globals';
import { Availability } from '../../lib/core/availability';

describe('While a question is unanswered', () => {
  it('an answer to one that was sent long before it does not end the silence', () => {
    const availability = new Availability();
    availability.asked(0);
    availability.asked(2_000);
    availability.answered(0);
    availability.refused(2_000, 30_000);
    expect(availability.isContended(2_200)).toBe(true);
    expect(availability.isContended(2_300)).toBe(false);
    expect(availability.silence(0, 2_300)).toBe(300);
  });

  it.each([
    ['its answer does', (one: Availability) => one.answered(2_000)],
    ['so does the end of its caller', (one: Availability) => one.withdrawn(2_000)],
  ])('%s, whatever is answered later', (_name, end) => {
    const availability = new Availability();
    availability.asked(0);
    availability.asked(2_000);
    end(availability);
    availability.answered(0);
    expect(availability.silence(0, 5_000)).toBe(0);
  });

  it('an answer to one that was sent a moment before it is an answer', () => {
    const availability = new Availability();
    availability.asked(0);
    availability.asked(100);
    availability.answered(0);
    expect(availability.silence(0, 5_000)).toBe(0);
  });
});
