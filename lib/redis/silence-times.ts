/**
 * How long Redis may say nothing, and what follows: the times of a silence, from the shortest to the longest. All are in
 * ms. `commandTimeout` (5 s), after which a single command is given up, lies between the last two.
 */

/** A server that wakes up may answer as a master for this long, though it was replaced: a late grant is then requested again. */
export const LEARNS_REPLACEMENT = 120;

/** From here on a wait that ends is ended by silence, and not by contention. A healthy server takes far less. */
export const SILENT = 250;

/** How long a single attempt waits for a client without a connection. The same time: both callers learn that Redis is away. */
export const CONNECTS_WITHIN = SILENT;

/**
 * From here on a server may have been frozen and replaced: grants are requested again, and calls are held back. Above
 * `SILENT`, as it costs further commands.
 */
export const MAYBE_REPLACED_AFTER = 500;

/** From here on the application is warned (REDIS_SILENT). Before `unavailableAfter`: the warning explains the errors that follow. */
export const WARNED_AFTER = 3_000;

/** From here on the dashboard says that a server gives no answer. It asks for much at once, so it has more time than a lock. */
export const SHOWN_AFTER = 4_000;

/** The default of `unavailableAfter`: calls that wait reject. Longer than a failover usually takes, so that they survive one. */
export const UNAVAILABLE_AFTER = 10_000;
