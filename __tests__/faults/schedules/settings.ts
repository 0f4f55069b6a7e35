/** ms; every lease is short and renewed, so that a fault has an effect within the schedule. */
export const TTL = 800;
export const WAIT_TIME = 400;
export const COMMAND_TIMEOUT = 250;

export const contenderOptions = {
  fencing: true,
  expireAfter: TTL,
  commandTimeout: COMMAND_TIMEOUT,
  unavailableAfter: 1_500,
  idleBetweenTries: 10,
} as const;
