import { AsyncLocalStorage } from 'node:async_hooks';
import { execFile } from 'node:child_process';
import { tracingChannel } from 'node:diagnostics_channel';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterEach, describe, expect, it, jest } from '@jest/globals';
import type { AcquireMessage, HoldMessage, ReleaseMessage } from '../../../lib';
import { acquireChannel, holdChannel, releaseChannel } from '../../../lib/api/diagnostics';
import { DISTINCT_TYPES } from '../../support/lock-types';
import { describePrivate, PrivateRedis } from '../../support/private-redis';
import { createRegistry } from '../../support/test-registry';
import { until } from '../../support/until';

const NAMES = ['acquire', 'hold', 'release'] as const;
const undo: (() => void)[] = [];

/** The messages that are published at the end of each operation. */
function record() {
  const ended = { acquire: [] as AcquireMessage[], hold: [] as HoldMessage[], release: [] as ReleaseMessage[] };
  for (const name of NAMES) {
    const asyncEnd = (message: unknown) => void (ended[name] as unknown[]).push({ ...(message as object) });
    const none = () => undefined;
    const subscribers = { start: none, end: none, asyncStart: none, asyncEnd, error: none };
    tracingChannel(`redis-lock-registry:${name}`).subscribe(subscribers);
    undo.push(() => tracingChannel(`redis-lock-registry:${name}`).unsubscribe(subscribers));
  }
  return ended;
}

afterEach(() => {
  for (const stop of undo.splice(0)) stop();
});

describePrivate('The channels', () => {
  const redis = PrivateRedis.install();

  describe.each(DISTINCT_TYPES)('of a %s lock', (lockType) => {
    const two = async () => {
      const first = createRegistry(await redis.connect(), { lockType, fencing: true });
      const { registryKey } = first;
      const second = createRegistry(await redis.connect(), { lockType, fencing: true, registryKey });
      return { first: first.registry, second: second.registry, registryKey };
    };

    it('The channels of a lock report an uncontended cycle', async () => {
      const { first, registryKey } = await two();
      const messages = record();
      const lease = await first.obtain('key').lock({ waitTime: 5_000 });
      expect(messages.acquire).toEqual([
        expect.objectContaining({
          ...{ registryKey, key: 'key', lockType, waitTime: 5_000, isReentry: false, contention: 'none' },
          ...{ attempts: 1, isHandedOver: false, outcome: 'acquired', fencingToken: lease.fencingToken, result: lease },
        }),
      ]);
      expect(messages.acquire[0]?.waited).toBeGreaterThan(0);
      expect(messages.hold).toEqual([]);
      await lease.unlock();
      expect(messages.hold).toEqual([expect.objectContaining({ outcome: 'ended', isReentry: false })]);
      expect(messages.release).toEqual([expect.objectContaining({ outcome: 'released', isHandedOver: false })]);
    });

    it('The channels of a lock report a wait for another process, one that was in vain, and one that was aborted', async () => {
      const { first, second } = await two();
      const lease = await first.obtain('key').lock();
      const messages = record();
      expect(await second.obtain('key').tryLock()).toBeNull();
      await expect(second.obtain('key').lock({ waitTime: 60 })).rejects.toThrow();
      expect(messages.acquire.map(({ outcome, contention, error }) => [outcome, contention, error])).toEqual([
        ['timed out', 'remote', undefined],
        ['timed out', 'remote', undefined],
      ]);
      const stop = new AbortController();
      const aborted = second.obtain('key').lock({ signal: stop.signal });
      stop.abort(new Error('enough'));
      await expect(aborted).rejects.toThrow('enough');
      expect(messages.acquire.at(-1)).toMatchObject({ outcome: 'aborted', error: stop.signal.reason });
      const waiting = second.obtain('key').lock();
      await until(async () => ((await first.obtain('key').inspect()).waiting ?? 1) > 0);
      await lease.unlock();
      await (await waiting).unlock();
      const last = messages.acquire.at(-1);
      expect(last).toMatchObject({ outcome: 'acquired', contention: 'remote' });
      expect(last?.attempts).toBeGreaterThan(0);
      if (lockType === 'fair') expect(last?.isHandedOver).toBe(true);
    });
  });

  it('The channels report that a lease was detached, and not the text that adopts it', async () => {
    const { registry } = createRegistry(await redis.connect());
    const messages = record();
    const text = await (await registry.obtain('key').lock()).detach();
    expect(messages.release).toEqual([expect.objectContaining({ outcome: 'detached', isHandedOver: false })]);
    expect(Object.values(messages.release[0] as object)).not.toContain(text);
    await (await registry.adopt(text)).unlock();
    await expect(registry.adopt(text)).rejects.toThrow('was lost');
    expect(messages.release.map(({ outcome }) => outcome)).toEqual(['detached', 'released']);
  });

  it('The channels publish the end of a lease in the context of its caller, also where another one finds the loss', async () => {
    const { registry } = createRegistry(await redis.connect());
    const context = new AsyncLocalStorage<string>();
    const seen: unknown[] = [];
    const subscriber = { asyncEnd: () => seen.push(context.getStore()) } as never;
    holdChannel.subscribe(subscriber);
    const lease = await context.run('taker', () => registry.obtain('key').lock());
    await registry.obtain('key').forceUnlock();
    await context.run('another', () => lease.renew().catch(() => undefined));
    expect(lease.signal.aborted).toBe(true);
    holdChannel.unsubscribe(subscriber);
    expect(seen).toEqual(['taker']);
  });

  it('The channels are not published to, and no message is made, without a subscriber', async () => {
    const traced = [acquireChannel, holdChannel, releaseChannel] as const;
    const made = traced.flatMap((one) => [jest.spyOn(one, 'tracePromise' as never), jest.spyOn(one.start, 'publish')]);
    const { registry } = createRegistry(await redis.connect());
    const cycle = async () => {
      await (await registry.obtain('key').lock()).unlock();
      await registry.run('key', () => undefined);
    };
    await cycle();
    expect(made.map((spy) => spy.mock.calls.length)).toEqual([0, 0, 0, 0, 0, 0]);
    record();
    await cycle();
    expect(made.filter((spy) => spy.mock.calls.length > 0).length).toBeGreaterThan(2);
  });

  it('The channels harm no lock when a subscriber throws: Node reports it as an uncaught exception', async () => {
    const args = ['-r', 'esbuild-register', join(__dirname, 'throwing-subscriber.ts')];
    const { stdout } = await promisify(execFile)(process.execPath, args, { timeout: 30_000 });
    const said = JSON.parse(stdout);
    expect(said).toEqual({ result: 7, commands: 4, isHeld: false, uncaught: expect.any(Number) });
    expect(said.uncaught).toBeGreaterThan(5);
  });
});
