import { clock, pause } from '../internal/clock';
import type { RedisClient } from './client';
import { answered } from './failure';
import { hashTag } from './names';

/** A node of a cluster, as node-redis knows it. */
export interface ClusterNode {
  readonly host: string;
  readonly port: number;
  /** The client's connection to the node, once it was needed. */
  readonly client?: Pick<RedisClient, 'isReady'> | undefined;
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

/** The node that has the slot, as far as a client that has `slots` says. */
export function masterOf(client: RedisClient, slot: number): ClusterNode | undefined {
  const cluster = client as ClusterClient<unknown>;
  return cluster.masterOf === undefined ? cluster.slots[slot]?.master : cluster.masterOf(slot);
}

/** `host:port`; empty without a node. */
export function addressOf(node: ClusterNode | undefined): string {
  return node === undefined ? '' : `${node.host}:${node.port}`;
}

export const SLOTS = 16_384;

/** x^16 + x^12 + x^5 + 1, without its first term. */
const POLYNOMIAL = 0x1021;

/**
 * How often the servers of a cluster are looked at, while slots move. Redis 8.4 and later hand over a whole slot at once: of
 * a server that was asked before that, and one that was asked after it, none has shown its keys.
 */
export const MOST_LOOKS = 3;

type Send = (...command: string[]) => Promise<unknown>;

/** Which master has which slots, as each of some servers says: '' of one that does not say it. */
export function slotMapsOf(sends: readonly Send[]): Promise<readonly string[]> {
  return Promise.all(sends.map((send) => send('CLUSTER', 'SLOTS').then(slotMapIn, () => '')));
}

/** The first and the last slot of each range, and the id of its master. */
function slotMapIn(reply: unknown): string {
  const ranges = Array.isArray(reply) ? reply.filter((range) => Array.isArray(range) && Array.isArray(range[2])) : [];
  return ranges.map(([first, last, [, , id]]) => `${first} ${last} ${id}`).join('\n');
}

/** How many masters a server knows that have slots. */
export function mastersIn(slotMap: string): number {
  return new Set(slotMap.split('\n').flatMap((line) => line.split(' ')[2] ?? [])).size;
}

/** The slot of a key on a Redis Cluster: the CRC-16/XMODEM of its hash tag, or of all of it. */
export function hashSlot(key: string): number {
  let remainder = 0;
  for (const byte of Buffer.from(hashTag(key) ?? key)) {
    remainder ^= byte << 8;
    for (let bit = 0; bit < 8; bit++) {
      remainder = remainder & 0x8000 ? (remainder << 1) ^ POLYNOMIAL : remainder << 1;
    }
    remainder &= 0xffff;
  }
  return remainder % SLOTS;
}

export interface ScanOptions {
  readonly MATCH: string;
  readonly COUNT: number;
}

export interface Page {
  readonly cursor: unknown;
  readonly keys: readonly unknown[];
}

/** node-redis: what SCAN needs. */
interface ScanningClient {
  scan(cursor: string, options: ScanOptions): Promise<Page>;
}

/** One page, over a client that takes commands as lists of words. */
export async function scanPage(
  command: (words: string[]) => Promise<unknown>,
  from: string,
  { MATCH, COUNT }: ScanOptions,
): Promise<Page> {
  const page = await command(['SCAN', from, 'MATCH', MATCH, 'COUNT', String(COUNT)]);
  const [cursor, keys] = page as [cursor: unknown, keys: unknown[]];
  return { cursor, keys };
}

export function canScan(client: RedisClient): boolean {
  return isClusterClient(client) || typeof (client as Partial<ScanningClient>).scan === 'function';
}

/**
 * Pages of the keys that match a glob, on all servers of a client that can scan. A key may come more than once. `timeout`
 * in ms, for each page, and for the connections to all servers.
 */
export async function* scan(
  client: RedisClient,
  pattern: string,
  count: number,
  timeout: number,
): AsyncGenerator<string[], void, undefined> {
  for (let looks = 1; ; looks++) {
    const servers = await scannedServers(client, timeout);
    const sends = isClusterClient(client) ? servers.map((server) => sendTo(server as Sending, timeout)) : [];
    const before = await slotMapsOf(sends);
    for (const server of servers) {
      let cursor = '0';
      do {
        const page = await answered(server.scan(cursor, { MATCH: pattern, COUNT: count }), timeout);
        cursor = String(page.cursor);
        yield page.keys.map(String);
      } while (cursor !== '0');
    }
    const after = await slotMapsOf(sends);
    if (after.join() === before.join()) return;
    if (looks === MOST_LOOKS) throw new Error('Slots of the cluster moved while its keys were listed');
  }
}

/** A client of a node of a cluster: those of node-redis have it, and those that the adapters make. */
interface Sending {
  sendCommand?(words: string[]): Promise<unknown>;
}

function sendTo(server: Sending, timeout: number): Send {
  return async (...command) => answered(Promise.resolve(server.sendCommand?.(command)), timeout);
}

/** A client that is no cluster. That of sentinels has replicas too, and would ask another one for each page. */
interface OneServer extends ScanningClient {
  getMasterNode?(): unknown;
  sendCommand(isReadonly: boolean, words: string[]): Promise<unknown>;
}

function oneServerOf(client: OneServer): ScanningClient {
  if (client.getMasterNode === undefined) return client;
  const ofMaster = (words: string[]): Promise<unknown> => client.sendCommand(false, words);
  return { scan: (cursor, options) => scanPage(ofMaster, cursor, options) };
}

/** ms between two looks at the masters of a cluster. */
const INTERVAL = 20;

/**
 * The servers that have the keys: of a cluster, once its client has a connection to the master of each slot. Else locks
 * would seem to be free. Throws after `timeout` ms.
 */
async function scannedServers(client: RedisClient, timeout: number): Promise<ScanningClient[]> {
  // SCAN is about one server.
  if (!isClusterClient<ScanningClient>(client)) return [oneServerOf(client as RedisClient & OneServer)];
  for (const endsAt = clock.now() + timeout; ; await pause(INTERVAL)) {
    const masters = new Set(client.masters.map(addressOf));
    let slot = 0;
    while (slot < SLOTS && masters.has(addressOf(masterOf(client, slot)))) slot++;
    if (slot === SLOTS)
      return answered(Promise.all(client.masters.map((master) => client.nodeClient(master))), timeout);
    if (clock.now() >= endsAt) throw new Error(`No node serves slot ${slot} of the cluster`);
  }
}
