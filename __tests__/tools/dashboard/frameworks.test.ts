import { once } from 'node:events';
import { createServer, request } from 'node:http';
import { connect, createServer as createHttp2Server } from 'node:http2';
import type { AddressInfo } from 'node:net';
import { afterAll, afterEach, beforeAll, expect, it } from '@jest/globals';
import { NestFactory } from '@nestjs/core';
import express from 'express';
import fastify from 'fastify';
import { Hono } from 'hono';
import { LockLostError } from '../../../lib';
import { type Dashboard, dashboard, toNode } from '../../../lib/tools/dashboard';
import { describePrivate, PrivateRedis } from '../../support/private-redis';
import { createRegistry } from '../../support/test-registry';

const TOKEN = 'a-token-for-the-tests-of-the-page';

class AppModule {}

/** As docs/operations.md has it: mounts the page at /locks, and listens. */
const FRAMEWORKS: Readonly<Record<string, (page: Dashboard) => Promise<[port: number, close: () => unknown]>>> = {
  async express(page) {
    const app = express();
    app.use(express.json());
    app.use('/locks', toNode(page));
    const server = app.listen(0, '127.0.0.1');
    await once(server, 'listening');
    return [(server.address() as AddressInfo).port, () => server.close()];
  },
  async fastify(page) {
    const app = fastify();
    app.all('/locks', (asked, reply) => toNode(page)(asked.raw, reply.hijack().raw));
    await app.listen({ port: 0, host: '127.0.0.1' });
    return [(app.server.address() as AddressInfo).port, () => app.close()];
  },
  async hono(page) {
    const app = new Hono();
    app.all('/locks', (context) => page(context.req.raw));
    const server = createServer(toNode(async (asked) => app.fetch(asked))).listen(0, '127.0.0.1');
    await once(server, 'listening');
    return [(server.address() as AddressInfo).port, () => server.close()];
  },
  async nest(page) {
    const app = await NestFactory.create({ module: AppModule }, { logger: false });
    app.use('/locks', toNode(page));
    await app.listen(0, '127.0.0.1');
    return [(app.getHttpServer().address() as AddressInfo).port, () => app.close()];
  },
};

describePrivate('The page', () => {
  const redis = PrivateRedis.install();
  let page: Dashboard;
  let close: () => unknown;

  beforeAll(async () => {
    page = dashboard(await redis.connect(), { token: TOKEN, actions: true, onAction: () => undefined });
  });

  afterEach(async () => {
    await close();
  });
  afterAll(() => page[Symbol.dispose]());

  it.each(Object.keys(FRAMEWORKS))('is mounted in %s: it shows, and it acts', async (framework) => {
    const [port, end] = await (FRAMEWORKS[framework] as (typeof FRAMEWORKS)[string])(page);
    close = end;
    const url = `http://127.0.0.1:${port}/locks`;
    const html = await fetch(url);
    expect([html.status, html.headers.get('content-type')]).toEqual([200, 'text/html; charset=utf-8']);
    expect(html.headers.get('content-security-policy')).toContain("default-src 'none'");
    expect(await html.text()).toContain('<title>Locks</title>');
    expect((await fetch(`${url}?view=locks`)).status).toBe(401);

    const { registry, nameOf } = createRegistry(await redis.connect(), { lockType: 'fair' });
    const lease = await registry.obtain('key').lock();
    const { owner = '' } = await registry.obtain('key').inspect();
    const headers = { authorization: `Bearer ${TOKEN}`, 'content-type': 'application/json' };
    const view = await fetch(`${url}?view=locks`, { headers: { authorization: headers.authorization } });
    expect(await view.json()).toMatchObject({ rows: expect.any(Array) });
    const query = new URLSearchParams({ act: 'unlock', lock: nameOf('key'), owner });
    const origin = 'http://evil.example';
    const foreign = await fetch(`${url}?${query}`, { method: 'POST', headers: { ...headers, origin }, body: '{}' });
    expect(foreign.status).toBe(403);
    const unlocked = await fetch(`${url}?${query}`, { method: 'POST', headers, body: '{}' });
    expect([unlocked.status, await unlocked.json()]).toEqual([200, { message: expect.stringContaining('by force') }]);
    await expect(lease.renew()).rejects.toThrow(LockLostError);
  });

  it('answers what is no request with 400', async () => {
    const server = createServer(toNode(page)).listen(0, '127.0.0.1');
    await once(server, 'listening');
    close = () => server.close();
    const { port } = server.address() as AddressInfo;
    const asked = request({ port, host: '127.0.0.1', path: '/', method: 'GET', headers: { host: 'a b' } });
    const [response] = await once(asked.end(), 'response');
    expect(response.statusCode).toBe(400);
    response.resume();
  });

  it('is left alone where the application has answered meanwhile', async () => {
    const slow = toNode(async () => {
      await answered;
      return new Response('late');
    });
    let settle = (): void => undefined;
    const answered = new Promise<void>((resolve) => {
      settle = resolve;
    });
    const outcomes: Promise<unknown>[] = [];
    const server = createServer((asked, answer) => {
      outcomes.push(slow(asked, answer));
      answer.writeHead(503).end('too slow');
      answer.on('error', (error) => outcomes.push(Promise.reject(error)));
    }).listen(0, '127.0.0.1');
    await once(server, 'listening');
    close = () => server.close();
    const response = await fetch(`http://127.0.0.1:${(server.address() as AddressInfo).port}/`);
    expect([response.status, await response.text()]).toEqual([503, 'too slow']);
    settle();
    expect(await Promise.all(outcomes)).toEqual([undefined]);
  });

  it('is served over HTTP/2, with its own origin', async () => {
    const server = createHttp2Server(toNode(page)).listen(0, '127.0.0.1');
    await once(server, 'listening');
    const client = connect(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
    close = () => {
      client.destroy();
      server.close();
    };
    const statusOf = async (headers: Record<string, string>) => {
      const asked = client.request({ authorization: `Bearer ${TOKEN}`, ...headers });
      const [{ ':status': status }] = await once(asked, 'response');
      return status;
    };
    const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    expect(await statusOf({ ':path': '/' })).toBe(200);
    expect(await statusOf({ ':path': '/?view=locks', origin })).toBe(200);
    expect(await statusOf({ ':path': '/?view=locks', origin: 'http://evil.example' })).toBe(403);
  });

  it('gets the address that the application was asked for, where a framework has cut it', async () => {
    const addresses: string[] = [];
    const handler = toNode(async ({ url }) => new Response(String(addresses.push(url))));
    const asked = { headers: { host: 'h' }, method: 'GET', originalUrl: '/locks/?view', url: '/?view' };
    await handler(asked as never, { setHeader() {}, end() {} } as never);
    expect(addresses).toEqual(['http://h/locks/?view']);
  });

  it('never rejects, whatever a handler answers with', async () => {
    const broken = new ReadableStream({ pull: (controller) => controller.error(new Error('no body')) });
    const answers = [
      () => Promise.reject(new Error('no answer')),
      async () => new Response(broken),
      async () => undefined as unknown as Response,
    ];
    const outcomes: Promise<unknown>[] = [];
    const server = createServer((asked, answer) => {
      outcomes.push(toNode(answers[outcomes.length] as (typeof answers)[number])(asked, answer));
    }).listen(0, '127.0.0.1');
    await once(server, 'listening');
    close = () => server.close();
    for (const _ of answers) {
      expect((await fetch(`http://127.0.0.1:${(server.address() as AddressInfo).port}/`)).status).toBe(400);
    }
    expect(await Promise.all(outcomes)).toEqual([undefined, undefined, undefined]);
  });
});
