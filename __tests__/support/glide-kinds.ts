import { GlideClient, GlideClusterClient, Logger } from '@valkey/valkey-glide';
import { fromGlide } from '../../lib/clients/valkey-glide';
import { type ClientKind, onCluster, onNode } from './client-kinds';
import type { Node } from './node';

// It would write every NOSCRIPT to the console.
Logger.setLoggerConfig('off');

const made = (instance: GlideClient | GlideClusterClient) => ({
  client: fromGlide(instance),
  end: () => instance.close(),
});

const optionsFor = (nodes: readonly Node[]) => ({
  addresses: nodes.map(({ address }) => ({ ...address })),
  requestTimeout: 5_000,
});

/** It knows no unix sockets: the server is one of its own. */
export const glideClient: ClientKind = {
  name: 'a client of valkey-glide',
  server: 'real',
  mayReorder: true,
  open: onNode(async (node) => made(await GlideClient.createClient(optionsFor([node])))),
};

export const glideCluster: ClientKind = {
  name: 'a cluster of valkey-glide',
  server: 'real',
  mayReorder: true,
  open: onCluster(async ({ masters }) => made(await GlideClusterClient.createClient(optionsFor(masters)))),
};
