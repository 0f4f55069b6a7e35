import { type Cell, type Check, type Ground, NotToBeHad } from './cell';
import { endAll } from './children';
import { within } from './within';

/** What a cell showed. */
export interface Outcome {
  readonly name: string;
  readonly ground: Ground;
  readonly title: string;
  readonly through: string;
  /** Checks that were as they should be. */
  readonly passed: number;
  readonly faults: readonly string[];
  /** Why it could not be run. */
  readonly notHad?: string;
  readonly seconds: number;
}

/** Runs it, for as long as it may take. */
export async function runCell(cell: Cell): Promise<Outcome> {
  const startedAt = performance.now();
  const checks: Check[] = [];
  let title: string | undefined;
  let notHad: string | undefined;
  try {
    title = await within(
      cell.limit,
      'the whole of it',
      cell.run((check) => void checks.push(check)),
    );
    if (checks.length === 0) throw new Error('nothing was looked at');
  } catch (error) {
    const fault = error instanceof Error ? error.message : String(error);
    if (error instanceof NotToBeHad) notHad = fault;
    else checks.push({ what: 'it cannot go on', fault });
  } finally {
    endAll();
  }
  const faults = checks.flatMap(({ what, fault }) => (fault === undefined ? [] : [`${what}: ${fault}`]));
  return {
    name: cell.name,
    ground: cell.ground,
    title: title ?? cell.title,
    through: cell.through,
    passed: checks.length - faults.length,
    faults,
    ...(notHad !== undefined && { notHad }),
    seconds: Math.round((performance.now() - startedAt) / 1_000),
  };
}
