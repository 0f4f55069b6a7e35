import assert from 'node:assert/strict';
import test from 'node:test';
import { buildApp } from './app.mjs';

const post = (app, url) => app.inject({ method: 'POST', url });

test('requests for one cart take turns', async () => {
  const app = buildApp();
  const began = Date.now();
  const responses = await Promise.all([post(app, '/carts/1'), post(app, '/carts/1'), post(app, '/carts/2')]);
  assert.deepEqual(
    responses.map(({ statusCode }) => statusCode),
    [200, 200, 200],
  );
  assert.ok(Date.now() - began >= 400);
  await app.close();
});

test('a double click gets 409', async () => {
  const app = buildApp();
  const responses = await Promise.all([post(app, '/orders/1'), post(app, '/orders/1')]);
  assert.deepEqual(responses.map(({ statusCode }) => statusCode).sort(), [200, 409]);
  await app.close();
});

test('a request that waits when the app closes gets 503, and one that has the lock ends well', async () => {
  const app = buildApp();
  await app.ready();
  const holding = post(app, '/carts/3');
  const waiting = post(app, '/carts/3');
  await new Promise((resolve) => setTimeout(resolve, 50));
  await app.close();
  assert.equal((await holding).statusCode, 200);
  assert.equal((await waiting).statusCode, 503);
});
