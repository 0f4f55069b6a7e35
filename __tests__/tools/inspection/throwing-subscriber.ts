import { tracingChannel } from 'node:diagnostics_channel';
import { RedisLockRegistry } from '../../../lib';

/** A process whose subscribers throw. Prints what its locks did, and how many uncaught exceptions there were. */
async function main(): Promise<void> {
  let uncaught = 0;
  process.on('uncaughtException', () => uncaught++);
  const fail = (): never => {
    throw new Error('of a subscriber');
  };
  for (const name of ['acquire', 'hold', 'release']) {
    const subscribers = { start: fail, end: fail, asyncStart: fail, asyncEnd: fail, error: fail };
    tracingChannel(`redis-lock-registry:${name}`).subscribe(subscribers);
  }
  const sent: string[] = [];
  const evalSha = async (_sha1: string, options?: { arguments?: string[] }) =>
    sent.push(String(options?.arguments)) && 1;
  const registry = new RedisLockRegistry({ eval: evalSha, evalSha }, { registryKey: 'orders' });
  const lease = await registry.obtain('key').lock();
  lease.assertHeld();
  await lease.unlock();
  const result = await registry.run('key', () => 7);
  await registry.close();
  await new Promise(setImmediate);
  console.log(
    JSON.stringify({ result, commands: sent.length, isHeld: registry.obtain('key').isAcquiredInThisProcess, uncaught }),
  );
}

void main();
