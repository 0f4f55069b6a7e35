/** One set of Java libraries to run beside. */
export interface JavaVersions {
  readonly spring: string;
  /** Spring's Redis client: of about the same age. */
  readonly lettuce: string;
  readonly redisson: string;
}

/** The newest first. Beside the others only the scenarios run, without the competition for shares. */
export const VERSIONS: readonly JavaVersions[] = [
  { spring: '7.1.0', lettuce: '7.5.2.RELEASE', redisson: '4.7.0' },
  { spring: '7.0.5', lettuce: '6.8.1.RELEASE', redisson: '3.52.0' },
  { spring: '6.5.5', lettuce: '6.6.0.RELEASE', redisson: '3.45.1' },
  { spring: '6.5.3', lettuce: '6.6.0.RELEASE', redisson: '3.27.2' },
  { spring: '6.5.2', lettuce: '6.6.0.RELEASE', redisson: '3.23.5' },
  { spring: '6.4.7', lettuce: '6.6.0.RELEASE', redisson: '3.23.5' },
  { spring: '6.2.11', lettuce: '6.3.2.RELEASE', redisson: '3.23.5' },
  { spring: '5.5.20', lettuce: '6.1.10.RELEASE', redisson: '3.23.5' },
];

/** The name of the environment variable that says which of them the tests run beside, by its position. */
export const SELECTED = 'INTEROP_VERSIONS';

/** What the tests run beside. */
export const versions = VERSIONS[Number(process.env[SELECTED] ?? 0)] as JavaVersions;

const isBefore = (version: string, other: string) => version.localeCompare(other, 'en', { numeric: true }) < 0;

/** Whether Spring's registry can renew a lease. */
export const SPRING_RENEWS = !isBefore(versions.spring, '6.4');

/** Whether Spring publishes the releases of a whole registry on one channel. */
export const LEGACY_CHANNEL = isBefore(versions.spring, '6.5.3');

/** Whether a waiter of Redisson's fair lock hangs when the lease of a dead holder ends. */
export const FAIR_WAITER_HANGS = isBefore(versions.redisson, '3.32');

/** A folder name: each set is built in its own. */
export function nameOf({ spring, redisson }: JavaVersions): string {
  return `spring-${spring}-redisson-${redisson}`;
}
