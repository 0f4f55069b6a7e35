import type { RedisClient } from './client';

/** A node of a cluster, as node-redis knows it. */
export interface ClusterNode {
  readonly host: string;
  readonly port: number;
}

/** node-redis' cluster client, by structure. `Client`: what is needed of the clients of its nodes. */
export interface ClusterClient<Client> extends RedisClient {
  readonly slots: readonly ({ readonly master: ClusterNode } | undefined)[];
  readonly masters: readonly ClusterNode[];
  /** A client that an adapter made has this, and its `slots` are empty. */
  masterOf?(slot: number): ClusterNode | undefined;
  nodeClient(node: ClusterNode): Promise<Client> | Client;
}

export function isClusterClient<Client>(client: RedisClient): client is ClusterClient<Client> {
  const { slots, masters, nodeClient } = client as Partial<ClusterClient<Client>>;
  return Array.isArray(slots) && Array.isArray(masters) && typeof nodeClient === 'function';
}

/** The node that has the slot, as far as the client says. */
export function masterOf(client: RedisClient, slot: number): ClusterNode | undefined {
  const cluster = client as Partial<ClusterClient<unknown>>;
  return cluster.masterOf === undefined ? cluster.slots?.[slot]?.master : cluster.masterOf(slot);
}

/** Empty without a node. */
export function addressOf(node: ClusterNode | undefined): string {
  return node === undefined ? '' : `${node.host}:${node.port}`;
}
