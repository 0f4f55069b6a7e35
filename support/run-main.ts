/** Exits with what `main` returns, and with 2 when it throws: mostly for a wrong option. */
export async function runMain(main: () => number | Promise<number>): Promise<void> {
  try {
    process.exitCode = await main();
  } catch (error) {
    console.error(error instanceof Error ? error.message : error);
    process.exitCode = 2;
  }
}
