/**
 * Compiled by `npm run typecheck`, never run: what the methods of a segmented lock return.
 */

import type { AcrossResult, Segment, SegmentedLock, SegmentedResult } from '../../lib';

type Same<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false;
const same = <A, B>(_: Same<A, B>): void => undefined;

/** A task whose type is inferred without its context. */
const declared = async (segment: Segment) => (segment.index > 0 ? segment.name : segment.exhausted);

export async function results(stock: SegmentedLock): Promise<void> {
  const inline = await stock.run(async ({ index, exhausted }) => (index > 0 ? index : exhausted));
  same<typeof inline, SegmentedResult<number>>(true);
  const separate = await stock.run(declared);
  same<typeof separate, SegmentedResult<string>>(true);
  const synchronous = await stock.run(({ index, exhausted }) => (index > 0 ? null : exhausted));
  same<typeof synchronous, SegmentedResult<null>>(true);

  // @ts-expect-error: there is a value only where it was served
  inline.value;
  if (inline.served) same<typeof inline.value, number>(true);

  const across = await stock.runAcross(3, {
    available: () => 1,
    commit: async (parts) => parts.map(({ name }) => name),
  });
  same<typeof across, AcrossResult<string[]>>(true);
  const all = await stock.runAll(async (segments) => segments.length);
  same<typeof all, number>(true);

  // @ts-expect-error: an amount is a number
  await stock.runAcross('3', { available: () => 1, commit: () => undefined });
}
