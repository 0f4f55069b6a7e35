/** Prints the measurements of a test if FAIR_NUMBERS is set. */
export function measured(what: string, numbers: Readonly<Record<string, unknown>>): void {
  if (process.env.FAIR_NUMBERS) process.stdout.write(`${what}: ${JSON.stringify(numbers)}\n`);
}

export function median(values: readonly number[]): number {
  return [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN;
}
