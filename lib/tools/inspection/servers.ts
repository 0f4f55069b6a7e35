import type { RedisClient } from '../../redis/client';
import { addressOf, type ClusterNode, isClusterClient, masterOf, SLOTS } from '../../redis/cluster';
import { ConnectionMonitor } from '../../redis/connection';
import { answered, messageOf } from '../../redis/failure';

/** In place of the address of a server, where the client does not say it. */
export const UNNAMED = 'Redis';

/** A server that is asked. `send` rejects with an error of the server, or with any other when it does not answer. */
export interface Asked {
  /** `host:port`, or UNNAMED. */
  readonly address: string;
  send(...command: string[]): Promise<unknown>;
  /** Rejects when the client has no connection to it, and could not make one. */
  readonly down: Promise<never>;
}

/** The servers that have the keys of a client. */
interface Servers {
  readonly asked: readonly Asked[];
  /** Why others cannot be asked. */
  readonly missing: readonly string[];
  readonly isCluster: boolean;
  /** How many servers the client knows, asked or not. */
  readonly known: number;
  /** Nothing is asked any more. */
  close(): void;
}

/** What is needed of a client: those of node-redis have it, and those that the adapters make of other clients. */
interface Sending extends RedisClient {
  sendCommand?(command: string[]): Promise<unknown>;
  /** A sentinel of node-redis. */
  getMasterNode?(): ClusterNode | undefined;
  readonly options?: { readonly socket?: Partial<ClusterNode> };
}

/** ms until a server that does not answer counts as not there. */
export const TIMEOUT = 5_000;

/** ms between two looks at whether a client has a connection. */
const INTERVAL = 50;

/** The servers of a client that is connected. `timeout` in ms, for each command. */
export async function serversOf(client: Sending, timeout: number): Promise<Servers> {
  const monitor = ConnectionMonitor.of(client as object);
  const stop = monitor.onReconnect(() => undefined);
  const watches: NodeJS.Timeout[] = [];
  const close = (): void => {
    stop();
    watches.forEach(clearInterval);
  };
  /** `text`: what the error of this server has in it. */
  const downOf = (connection: () => { readonly isReady?: boolean } | undefined, text: string): Promise<never> => {
    const down = new Promise<never>((_, reject) => {
      const look = (): void => {
        const { lastError } = monitor;
        if (lastError === undefined || !messageOf(lastError).includes(text)) return;
        if (connection()?.isReady === false) reject(lastError);
      };
      watches.push(setInterval(look, INTERVAL).unref());
    });
    // The answer may have come first.
    down.catch(() => undefined);
    return down;
  };
  if (!isClusterClient<Sending>(client)) {
    if (client.sendCommand === undefined || 'slots' in client) {
      return { asked: [], missing: ['The client has no way to ask each server'], isCluster: false, known: 0, close };
    }
    const down = downOf(() => client, '');
    return { asked: [askedOf(client, nodeOf(client), timeout, down)], missing: [], isCluster: false, known: 1, close };
  }
  const masters = client.masters.map(addressOf);
  const owners = Array.from({ length: SLOTS }, (_, slot) => addressOf(masterOf(client, slot)));
  const unconnected = [...new Set(owners)].filter((address) => address !== '' && !masters.includes(address));
  const missing = unconnected.map((address) => `${address} could not be asked: there is no connection to it`);
  const unserved = owners.filter((address) => address === '').length;
  if (unserved > 0) missing.push(`No server has ${unserved} of the ${SLOTS} slots of the cluster`);
  const asked = await Promise.all(
    client.masters.map(async (node) => {
      try {
        let connected: Sending | undefined;
        const down = downOf(() => node.client ?? connected, addressOf(node));
        connected = await Promise.race([answered(Promise.resolve(client.nodeClient(node)), timeout), down]);
        return [askedOf(connected, node, timeout, down)];
      } catch (error) {
        missing.push(`${addressOf(node)} could not be asked: ${messageOf(error)}`);
        return [];
      }
    }),
  );
  return { asked: asked.flat(), missing, isCluster: true, known: new Set([...masters, ...unconnected]).size, close };
}

function askedOf(client: Sending, node: ClusterNode | undefined, timeout: number, down: Promise<never>): Asked {
  // Replies in their own types, though the application made its client answer with Buffers.
  const commands = (client.withCommandOptions?.({ timeout: 0, typeMapping: {} }) ?? client) as Sending;
  const { sendCommand } = commands as Required<Sending>;
  const isSentinel = client.getMasterNode !== undefined;
  const send = (command: string[]): Promise<unknown> =>
    sendCommand.apply(commands, (isSentinel ? [false, command] : [command]) as [string[]]);
  return { address: addressOf(node) || UNNAMED, send: (...command) => answered(send(command), timeout), down };
}

function nodeOf(client: Sending): ClusterNode | undefined {
  if (client.getMasterNode !== undefined) return client.getMasterNode();
  const { host, port } = client.options?.socket ?? {};
  return host === undefined || port === undefined ? undefined : { host, port };
}
