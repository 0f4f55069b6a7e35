export const SHARDED_SUBSCRIPTION_MODES = ['auto', 'on', 'off'] as const;

/** Whether releases go over sharded channels. `auto`: on a cluster, if the server has them. */
export type ShardedSubscriptionMode = (typeof SHARDED_SUBSCRIPTION_MODES)[number];
