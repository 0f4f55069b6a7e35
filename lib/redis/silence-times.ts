/**
 * How long Redis may say nothing, and what follows: the times of a silence, from the shortest to the longest. All are in
 * ms. `commandTimeout` (5 s), after which a single command is given up, lies between the last two.
 */

/**
 * A server that wakes up may answer as a master for this long, though it was replaced. A late grant is requested again
 * after that.
 */
export const LEARNS_REPLACEMENT = 120;

/** A wait that ends after this much silence ends with an error, and not with contention. A healthy server takes far less. */
export const SILENT = 250;

/** A single attempt waits this long for a client without a connection: as long as for an answer. */
export const CONNECTS_WITHIN = SILENT;

/**
 * A server that was silent for longer may have been frozen and replaced: its grants are requested again
 * (`core/repetitions`). From then on `redis/line` holds runs back, once the client has 200 without an answer. Longer than
 * `SILENT`, as requesting again costs commands.
 */
export const MAYBE_REPLACED_AFTER = 500;

/** The application is warned (REDIS_SILENT). Before `unavailableAfter`: the warning explains the errors that follow. */
export const WARNED_AFTER = 3_000;

/** The dashboard says that a server gives no answer. It asks for much at once, and has more time than a lock. */
export const SHOWN_AFTER = 4_000;

/** The default of `unavailableAfter`: calls that wait reject. Longer than most failovers, so that waiters outlive one. */
export const UNAVAILABLE_AFTER = 10_000;
