import { afterEach, beforeEach, expect } from '@jest/globals';
import type { RedisClient } from '../../../lib';
import { clock } from '../../../lib/internal/clock';
import { type Dashboard, type DashboardAction, type DashboardOptions, dashboard } from '../../../lib/tools/dashboard';
import { PrivateRedis } from '../../support/private-redis';
import type { TestClient } from '../../support/redis';
import { createRegistry } from '../../support/test-registry';

export const TOKEN = 'a-token-for-the-tests-of-the-page';
export const ADDRESS = 'http://127.0.0.1:5000/locks';

interface ShownLock {
  readonly lock: string;
  readonly owner: string;
  readonly holder: string | null;
  readonly holders: readonly { readonly holder: string; readonly heldFor: number | null; readonly isOlder?: boolean }[];
  readonly heldFor: number | null;
  readonly isHere: boolean;
  readonly isSure: boolean;
  readonly isOlder: boolean;
  readonly renewed: boolean | null;
  readonly longestWait: number | null;
  readonly isLeast: boolean;
  readonly usual: number | null;
  readonly isLong: boolean;
  readonly isOverdue: boolean;
}

export interface View {
  readonly problem: string | null;
  readonly missing: readonly string[];
  readonly searched: readonly string[];
  readonly isLookedFor: boolean;
  readonly matched: number;
  readonly from: number;
  readonly actions: boolean;
  readonly server: string;
  readonly database: number | null;
  readonly counts: { readonly held: number; readonly waiting: number; readonly overdue: number; readonly kept: number };
  readonly rows: readonly ShownLock[];
  readonly selected: (ShownLock & { readonly waitingHere: number; readonly queue: readonly unknown[] | null }) | null;
  readonly changes: readonly {
    readonly lock: string;
    readonly what: string;
    readonly by: string | null;
    readonly times: number;
    reason?: string;
  }[];
  /** `null`: this process has called no lock. */
  readonly here: readonly { readonly lock: string; readonly calls: number; readonly waitsFor: string }[] | null;
}

/** ms by which the clock of the library is ahead: a test need not wait until the page looks at Redis again. */
let ahead = 0;
const { now } = clock;
clock.now = () => now() + ahead;

export function skip(ms: number): void {
  ahead += ms;
}

/** A page, with a server and a client of its own, for the tests of the surrounding `describe`. */
export class TestedPage {
  readonly redis = PrivateRedis.install();
  client!: TestClient;
  page!: Dashboard;
  /** What `onAction` was called with. */
  actions: DashboardAction[] = [];

  constructor() {
    beforeEach(async () => {
      this.client = await this.redis.connect();
      this.create();
    });
    afterEach(() => this.page[Symbol.dispose]());
  }

  /** Makes the page anew. */
  create(options: Partial<DashboardOptions> = {}, of: RedisClient = this.client): void {
    this.page?.[Symbol.dispose]();
    this.actions = [];
    this.page = dashboard(of, { token: TOKEN, onAction: (action) => void this.actions.push(action), ...options });
  }

  ask(query: Record<string, string>, headers: Record<string, string> = {}, method = 'GET'): Promise<Response> {
    const address = `${ADDRESS}?${new URLSearchParams(query)}`;
    return this.page(new Request(address, { method, headers: { authorization: `Bearer ${TOKEN}`, ...headers } }));
  }

  async view(query: Record<string, string> = {}): Promise<View> {
    const response = await this.ask({ view: 'locks', ...query });
    expect(response.status).toBe(200);
    return (await response.json()) as View;
  }

  unlock(lock: string, owner: string, headers: Record<string, string> = {}): Promise<Response> {
    return this.ask({ act: 'unlock', lock, owner }, { 'content-type': 'application/json', ...headers }, 'POST');
  }

  async held(key: string, options = {}) {
    const created = createRegistry(await this.redis.connect(), { lockType: 'fair', name: 'web-7', ...options });
    const lease = await created.registry.obtain(key).lock();
    const { owner = '' } = await created.registry.obtain(key).inspect();
    return { ...created, lease, owner, lock: created.nameOf(key) };
  }
}
