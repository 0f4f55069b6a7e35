import assert from 'node:assert/strict';
import { fork } from 'node:child_process';
import { once } from 'node:events';
import test from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';

/** An instance of the function, which is frozen between two calls. */
class Instance {
  #process = fork('./runtime.mjs');

  async invoke(event) {
    this.#process.kill('SIGCONT');
    this.#process.send(event);
    const [response] = await once(this.#process, 'message');
    this.#process.kill('SIGSTOP');
    return response;
  }

  end() {
    this.#process.kill('SIGKILL');
  }
}

test('an instance works again after it was frozen, and leaves no lock while it is', { timeout: 30_000 }, async () => {
  const [first, second] = [new Instance(), new Instance()];
  assert.deepEqual(await first.invoke({ month: '2026-11' }), { statusCode: 200, total: 99 });
  // The first one is frozen now.
  assert.deepEqual(await second.invoke({ month: '2026-11' }), { statusCode: 200, total: 99 });
  await sleep(3_000);
  assert.deepEqual(await first.invoke({ month: '2026-11' }), { statusCode: 200, total: 99 });
  first.end();
  second.end();
});

test('a lease that was forgotten is lost while the instance is frozen, and says so at once', { timeout: 30_000 }, async () => {
  const [first, second] = [new Instance(), new Instance()];
  const { remaining } = await first.invoke({ month: '2026-12', forgetToUnlock: true });
  assert.ok(remaining > 0);
  // It isn't renewed in a frozen process: others have the lock when its 2 s are over.
  assert.deepEqual(await second.invoke({ month: '2026-12' }), { statusCode: 200, total: 99 });
  assert.deepEqual(await first.invoke({ month: '2026-12', forgetToUnlock: true }), { statusCode: 200, remaining: 0 });
  first.end();
  second.end();
});
