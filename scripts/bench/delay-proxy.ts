/** A proxy process in front of the server that delays every byte in both directions. */

import { FaultyProxy } from '../../__tests__/support/proxy';
import type { Address } from './candidates/candidate';

async function main(): Promise<void> {
  const { address, delay } = JSON.parse(process.env.BENCH_PROXY ?? '{}') as { address: Address; delay: number };
  const proxy = await FaultyProxy.start(address);
  proxy.requests.delay = delay;
  proxy.replies.delay = delay;
  process.send?.(proxy.address);
}

process.on('disconnect', () => process.exit());
process.on('SIGINT', () => {});
void main();
