/**
 * The test files that `npm run test:long` runs, and `npm test` leaves out: many processes, many kills, many seconds of a
 * clock that cannot be replaced, or what other tests assert, through one more kind of client. For one of them:
 * `npm run test:long -- killing`.
 */
export const LONG_TESTS = [
  'adapters/workerd',
  'batches/open-slot',
  'cli/clients',
  'cli/transcripts',
  'contract/client-redisson',
  'contract/declared-keys',
  'contract/embedded',
  'contract/keys-without-expiry',
  'contract/pool',
  'contract/redis-5',
  'contract/sentinel',
  'contract/upstash',
  'faults/calls-are-held-back',
  'faults/demoted-server-wakes-up',
  'faults/many-leases-are-held',
  'faults/server-is-gone-for-a-while',
  'multi/other-clients',
  'multi/processes',
  'multi/silent-redis',
  'readme/old-libraries',
  'readme/programs',
  'readme/recipes',
  'replicas/topologies',
  'simulation/states',
  'simulation/trace',
  'soak/porcupine',
  'soak/soak',
  'travelling/relay',
  'waiting/client-kinds',
  'waiting/long-chain',
  'waiting/pollers',
  'waiting/shares',
].map((name) => `<rootDir>/__tests__/${name}.test.ts`);
