import { randomBytes } from 'node:crypto';
import { createServer } from 'node:http';
import { type AddressInfo, isIP } from 'node:net';
import { dashboard, toNode } from '../dashboard';
import { type Arguments, assertNoKey, numberOf, registryKeyOf } from './arguments';
import { EXIT, ExitError, print, usageError } from './output';
import { using } from './show';

/** `redis-locks ui`: until SIGINT or SIGTERM. */
export async function ui(args: Arguments): Promise<number> {
  assertNoKey(args);
  const { values } = args;
  const { actions = false, host = '127.0.0.1', token = randomBytes(16).toString('base64url') } = values;
  const isLoopback = host === 'localhost' || host === '::1' || (isIP(host) === 4 && host.startsWith('127.'));
  if (!isLoopback && values.token === undefined) {
    throw usageError(`Others can reach ${host}: give a --token of at least 16 characters`);
  }
  if (token.length < 16) throw usageError('--token takes at least 16 characters');
  return using(values, async ({ client }) => {
    const page = dashboard(client, { token, actions, registryKey: registryKeyOf(values) });
    const server = createServer(toNode(page));
    await new Promise<void>((resolve, reject) => {
      server.once('error', ({ message }) => reject(new ExitError(EXIT.unavailable, `It cannot listen: ${message}`)));
      server.listen(numberOf(values, 'port', 0, 0, 65_535), host, resolve);
    });
    const { address, family, port } = server.address() as AddressInfo;
    const url = `http://${family === 'IPv6' ? `[${address}]` : address}:${port}/#token=${encodeURIComponent(token)}`;
    print(values.json ? JSON.stringify({ url }) : `The locks are shown at ${url}`);
    await new Promise((resolve) => process.once('SIGINT', resolve).once('SIGTERM', resolve));
    server.close().closeAllConnections();
    page[Symbol.dispose]();
    return EXIT.ok;
  });
}
