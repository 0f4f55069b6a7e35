import { createHash, timingSafeEqual } from 'node:crypto';
import { readFileSync } from 'node:fs';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Http2ServerRequest, Http2ServerResponse } from 'node:http2';
import { join } from 'node:path';
import { LockKeptError } from '../../api/errors';
import { backgroundPause, clock } from '../../internal/clock';
import {
  boolean,
  type Checks,
  callback,
  checkedOptions,
  expected,
  nonEmptyString,
  SECRET,
} from '../../internal/validation';
import { describeWrongClient, isRedisClient, type RedisClientOrFromIoredis } from '../../redis/client';
import { messageOf } from '../../redis/failure';
import { ask, findLocks, forceUnlock } from '../inspection/find-locks';
import { releaseCommand } from '../inspection/release-command';
import { Activity } from './activity';
import { viewOf } from './view';

/** Options of `dashboard`. Either `token` or `authorize` is needed. */
export interface DashboardOptions {
  /**
   * Everybody who has it sees the locks: at least 16 characters of ASCII. The address of the page ends with `#token=` and
   * it.
   * @default none
   */
  token?: string | undefined;
  /**
   * Whether a request may see the page, and act: for an application that knows its users. Only `true` allows it.
   * @default none
   */
  authorize?: ((request: Request) => boolean | Promise<boolean>) | undefined;
  /**
   * The locks of this registryKey only.
   * @default those of all registries on the server
   */
  registryKey?: string | undefined;
  /**
   * Whether the page may unlock by force.
   * @default false
   */
  actions?: boolean | undefined;
  /**
   * Called after every action. What it throws is a line on stderr.
   * @default a line on stderr
   */
  onAction?: ((action: DashboardAction) => void) | undefined;
}

/** A lock was unlocked by force, on somebody's request. */
export interface DashboardAction {
  readonly at: Date;
  /** The lock's name in Redis, and who had it. */
  readonly lock: string;
  readonly owner: string;
  readonly holder: string;
  readonly request: Request;
}

/** Answers requests for the page. Disposed of, it no longer listens to the channels of this process. */
export interface Dashboard extends Disposable {
  (request: Request): Promise<Response>;
}

const CHECKS: Checks<DashboardOptions> = {
  token: secret,
  authorize: callback,
  registryKey: nonEmptyString,
  actions: boolean,
  onAction: callback,
};

/** ms until a wrong token is answered: at first, and at most. After a time without one it is as at first. */
const FIRST_PAUSE = 100;
const LONGEST_PAUSE = 10_000;
const FORGOTTEN = 60_000;

/**
 * A page that shows the locks on the server of this client: a handler to mount in a web framework, at any path. It reads
 * only, unless `actions` is true. The client is connected, and stays the caller's.
 * @throws TypeError when an option is unknown or has a wrong type, or there is neither `token` nor `authorize`.
 * @example
 * const page = dashboard(client, { token: process.env.LOCKS_TOKEN });
 * app.use('/locks', toNode(page)); // Express
 */
export function dashboard(client: RedisClientOrFromIoredis, options: DashboardOptions): Dashboard {
  if (!isRedisClient(client)) throw new TypeError(describeWrongClient(client));
  const given = checkedOptions(CHECKS, options);
  const { actions = false, authorize, onAction = logged, registryKey, token } = given;
  if ((token === undefined) === (authorize === undefined)) {
    throw new TypeError(expected('options', 'with either a `token` or `authorize`', Object.keys(given)));
  }
  const activity = new Activity(registryKey);
  const view = viewOf(client, registryKey, activity, actions);

  const mayAsk = async (request: Request, isPage: boolean): Promise<boolean> => {
    // Whatever else it returns may be meant as a refusal: a Response, or an object that says no.
    if (authorize !== undefined) return (await authorize(request)) === true;
    // The page has nothing of the locks in it: it asks for them with the token, which no other origin can send.
    const given = request.headers.get('authorization') ?? '';
    if (isPage || isSame(given, `Bearer ${token}`)) return true;
    if (given !== '') await wrongToken();
    return false;
  };

  let wrongTokens = 0;
  let wrongAt = 0;
  /** Who guesses waits for twice as long each time. Nobody else does. */
  const wrongToken = (): Promise<void> => {
    const now = clock.now();
    if (now - wrongAt > FORGOTTEN) wrongTokens = 0;
    wrongAt = now;
    return backgroundPause(Math.min(FIRST_PAUSE * 2 ** wrongTokens++, LONGEST_PAUSE));
  };

  /** Rejects with what `onAction` throws. An application may give an async function. */
  const noteAction = async (action: DashboardAction): Promise<void> => onAction(action);

  /** Asks for the lock where somebody says `why`; else unlocks it by force. */
  const act = async (request: Request, lock: string, owner: string, why: string | null): Promise<Response> => {
    const done = why === null ? 'unlocked' : 'asked';
    const prefix = registryKey === undefined ? '' : `${registryKey}:`;
    const names = lock.startsWith(prefix) ? [lock] : [];
    const { locks, missing } = await findLocks(client, { registryKey, names });
    const [found] = locks;
    if (found === undefined && missing.length > 0) return json(503, { message: missing.join('; ') });
    if (found?.isSure === false) {
      const how = releaseCommand(lock);
      return json(409, { message: `Nothing was ${done}: it may be data of an application. To delete it: ${how}` });
    }
    const holder = found?.holders.find((one) => one.owner === owner)?.holder;
    const isAnother = (by = 'nobody') => json(409, { message: `Nothing was ${done}: by now ${by} holds it` });
    if (found === undefined || holder === undefined) return isAnother(found?.holder ?? undefined);
    let told: boolean | undefined;
    try {
      if (why !== null) {
        const isTold = await ask(client, found, why);
        return json(200, { message: `${holder} holds ${lock}, and ${isTold ? 'was' : 'could not be'} asked for it` });
      }
      const state = await forceUnlock(client, found);
      if (!state.held) return isAnother();
      told = state.told;
    } catch (error) {
      if (error instanceof LockKeptError) return isAnother('another one');
      return json(502, { message: messageOf(error) });
    }
    activity.note('forced', lock, holder);
    view.expire();
    noteAction({ at: new Date(), lock, owner, holder, request }).catch((error: unknown) => {
      report('`onAction` failed', error);
    });
    const how = told ? 'was' : told === false ? 'could not be' : 'may not have been';
    return json(200, { message: `${lock} was unlocked by force; ${holder} held it, and ${how} told` });
  };

  const answer = async (request: Request): Promise<Response> => {
    const { searchParams: query } = new URL(request.url);
    const isAction = query.has('act');
    const isPage = !isAction && !query.has('view');
    if (request.method !== (isAction ? 'POST' : 'GET')) return refusal(405, 'Method not allowed');
    if (!isPage && !isOfThisOrigin(request)) return refusal(403, 'Requests of other origins are not answered');
    if (!(await mayAsk(request, isPage))) return refusal(401, 'The token is missing, or not the right one');
    if (isPage) return response(200, 'text/html; charset=utf-8', page().html, page().policy);
    if (!isAction) return json(200, await view.read(query));
    const what = query.get('act');
    if (what !== 'unlock' && what !== 'ask') return refusal(400, 'There is no such action');
    if (!actions) return refusal(403, 'This page only reads: the option `actions` is off');
    if (request.headers.get('content-type') !== 'application/json') return refusal(415, 'Send application/json');
    const why = what === 'ask' ? (query.get('why') ?? '') : null;
    return act(request, query.get('lock') ?? '', query.get('owner') ?? '', why);
  };

  const handle = (request: Request): Promise<Response> =>
    answer(request).catch((error: unknown) => {
      // Who asks may not be known yet, and the error may be about a session store.
      report('A request failed', error);
      return refusal(500, 'The request failed: the server says on stderr why');
    });
  return Object.assign(handle, { [Symbol.dispose]: activity.stop });
}

/**
 * The handler for `node:http`, `node:http2`, Express, Fastify and Nest. Its promise never rejects.
 * @throws TypeError when it is no function.
 */
export function toNode(handler: (request: Request) => Promise<Response>) {
  callback('handler', handler);
  return async (
    asked: (IncomingMessage | Http2ServerRequest) & { readonly originalUrl?: string },
    answer: ServerResponse | Http2ServerResponse,
  ): Promise<void> => {
    const { headers, method = 'GET', originalUrl, url = '/' } = asked;
    let found: Response;
    let body: string;
    try {
      // The handler reads no body.
      const address = new URL(originalUrl ?? url, `http://${headers.host ?? headers[':authority'] ?? 'localhost'}`);
      // Headers of HTTP/2 that begin with a colon are none of a Request.
      const pairs = Object.entries(headers).filter(([name]) => !name.startsWith(':'));
      found = await handler(
        new Request(address, { method, headers: pairs.map(([name, value]) => [name, String(value)]) }),
      );
      body = await found.text();
    } catch {
      found = refusal(400, 'Bad request');
      body = await found.text();
    }
    // The application may have answered meanwhile: that Redis is slow, for example.
    if (answer.headersSent || answer.writableEnded) return;
    answer.statusCode = found.status;
    for (const [name, value] of found.headers) answer.setHeader(name, value);
    answer.end(body);
  };
}

/** Whether the page itself asks, as the browser says, or else no browser. */
function isOfThisOrigin({ headers, url }: Request): boolean {
  const site = headers.get('sec-fetch-site');
  if (site !== null) return site === 'same-origin';
  const origin = headers.get('origin');
  return origin === null || origin.replace(/^https?:\/\//, '') === (headers.get('host') ?? new URL(url).host);
}

/** In a time that says nothing about the texts. */
function isSame(one: string, other: string): boolean {
  const [a, b] = [one, other].map((text) => createHash('sha256').update(text).digest());
  return timingSafeEqual(a as Buffer, b as Buffer);
}

/** Quotes nothing of it: a text in a list is a secret too. */
function secret(name: string, value: unknown): string {
  if (typeof value !== 'string') {
    throw new TypeError(`Expected \`${name}\` to be a string, got a value of type ${typeof value}`);
  }
  if (!SECRET.test(value)) {
    throw new RangeError(expected(name, 'of at least 16 characters of ASCII, without a space at its ends', '…'));
  }
  return value;
}

function logged({ at, holder, lock }: DashboardAction): void {
  log(at, `lock ${JSON.stringify(lock)} was unlocked by force; ${JSON.stringify(holder)} held it`);
}

function report(what: string, error: unknown): void {
  log(new Date(), `${what}: ${JSON.stringify(messageOf(error))}`);
}

function log(at: Date, text: string): void {
  process.stderr.write(`${at.toISOString()} redis-lock-registry: ${text}\n`);
}

function refusal(status: number, message: string): Response {
  return json(status, { message });
}

function json(status: number, value: unknown): Response {
  return response(status, 'application/json', JSON.stringify(value), "default-src 'none'; frame-ancestors 'none'");
}

function response(status: number, type: string, body: string, policy: string): Response {
  const headers = {
    'content-type': type,
    'content-security-policy': policy,
    'cache-control': 'no-store',
    'cross-origin-opener-policy': 'same-origin',
    'cross-origin-resource-policy': 'same-origin',
    'referrer-policy': 'no-referrer',
    'x-content-type-options': 'nosniff',
  };
  return new Response(body, { status, headers });
}

let made: { readonly html: string; readonly policy: string } | undefined;

/**
 * The page in one file, and what may run and be loaded on it: what is in it, and answers of its own server. The sources are
 * read when they are first needed. The build puts their texts in place of the calls.
 */
function page() {
  if (made !== undefined) return made;
  const css = readFileSync(join(__dirname, 'page/page.css'), 'utf8');
  const texts = readFileSync(join(__dirname, 'page/texts.js'), 'utf8');
  const script = texts + readFileSync(join(__dirname, 'page/page.js'), 'utf8');
  const html = readFileSync(join(__dirname, 'page/page.html'), 'utf8')
    .replace('/* page.css */', () => css)
    .replace('/* texts.js, page.js */', () => script);
  const policy = [
    "default-src 'none'",
    `script-src '${hashOf(script)}'`,
    `style-src '${hashOf(css)}'`,
    "connect-src 'self'",
    'img-src data:',
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
    "require-trusted-types-for 'script'",
    "trusted-types 'none'",
  ];
  made = { html, policy: policy.join('; ') };
  return made;
}

function hashOf(text: string): string {
  return `sha256-${createHash('sha256').update(text).digest('base64')}`;
}
