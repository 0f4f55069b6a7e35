/**
 * The test files that `npm run test:long` runs, and `npm test` leaves out: many processes, many kills, or many seconds of
 * a clock that cannot be replaced. For one of them: `npm run test:long -- killing`.
 */
export const LONG_TESTS = [
  'cli/transcripts',
  'contract/embedded',
  'faults/calls-are-held-back',
  'faults/demoted-server-wakes-up',
  'faults/many-leases-are-held',
  'faults/server-is-gone-for-a-while',
  'multi/other-clients',
  'multi/processes',
  'multi/silent-redis',
  'readme/old-libraries',
  'readme/recipes',
  'replicas/topologies',
  'simulation/trace',
  'soak/porcupine',
  'soak/soak',
  'waiting/long-chain',
  'waiting/pollers',
  'waiting/shares',
].map((name) => `<rootDir>/__tests__/${name}.test.ts`);
