/** Prints the measurements of a test if FAIR_NUMBERS is set. */
export function measured(what: string, numbers: Readonly<Record<string, unknown>>): void {
  if (process.env.FAIR_NUMBERS) process.stdout.write(`${what}: ${JSON.stringify(numbers)}\n`);
}
