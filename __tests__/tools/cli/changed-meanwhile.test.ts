import { expect, it, jest } from '@jest/globals';
import { readArguments } from '../../../lib/tools/cli/arguments';
import type { connectTo } from '../../../lib/tools/cli/connect';
import type * as Shown from '../../../lib/tools/cli/show';
import { describePrivate, PrivateRedis } from '../../support/private-redis';

const connect = jest.fn<typeof connectTo>();
jest.mock('../../../lib/tools/cli/connect', () => ({ connectTo: connect }));
const { release }: typeof Shown = require('../../../lib/tools/cli/show');

const JAVA = '0b3c1b60-7d1e-4c0b-9f0e-2d1f7a1c9f11';
const LATER = '1b3c1b60-7d1e-4c0b-9f0e-2d1f7a1c9f11';

describePrivate('release', () => {
  const redis = PrivateRedis.install();

  it('release of a lock whose value has changed since it was looked at ends with 75, and deletes nothing', async () => {
    const client = await redis.connect();
    await client.set('jobs:1', JAVA, { PX: 60_000 });
    const sendCommand = async (command: string[]) => {
      // The script that unlocks leaves a mark.
      if (command.some((word) => word.includes(':forced:'))) await client.set('jobs:1', LATER, { PX: 60_000 });
      return client.sendCommand(command);
    };
    const late = Object.create(client, { withCommandOptions: {}, sendCommand: { value: sendCommand } });
    const [database, databases, done] = [0, [0], async () => undefined];
    connect.mockResolvedValue({ client: late, address: 'here', database, databases, connect: done, close: done });
    const words = ['release', 'jobs:1', '--yes', '--may-be-data'];
    await expect(release(readArguments(words))).rejects.toMatchObject({
      exitCode: 75,
      message: 'Nothing was released: by now it is another one',
    });
    expect(await client.get('jobs:1')).toBe(LATER);
  });
});
