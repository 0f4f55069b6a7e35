import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, it } from '@jest/globals';
import type { Meter, MetricOptions } from '@opentelemetry/api';
import { instrumentLocks } from '../../lib/opentelemetry';
import { type RedisServer, startRedis } from '../../support/redis';
import { describePrivate } from '../support/private-redis';
import { codeSpans, ROOT, tableBelow } from './pages';
import { ProgramFolder } from './program-folder';
import { ADDRESSES, programsOf } from './programs';

interface Dashboard {
  readonly panels: readonly { readonly targets: readonly { readonly expr: string; readonly legendFormat: string }[] }[];
  readonly templating: { readonly list: readonly { readonly query: string | { readonly query: string } }[] };
}

const DASHBOARD = JSON.parse(readFileSync(join(ROOT, 'docs/grafana-dashboard.json'), 'utf8')) as Dashboard;
const TARGETS = DASHBOARD.panels.flatMap(({ targets }) => targets);
const QUERIES = [
  ...TARGETS.map(({ expr }) => expr),
  ...DASHBOARD.templating.list.map(({ query }) => JSON.stringify(query)),
];

/** Appended to the program of the page: a cycle, a loss, and what Prometheus scrapes then. */
const SCRAPE = `
const another = createClient({ url: '${ADDRESSES.url}' });
await another.connect();
const losing = new RedisLockRegistry(another, { registryKey: 'losing' });
const lease = await losing.obtain('key').lock();
await losing.obtain('key').forceUnlock();
await lease.renew().catch(() => undefined);
await losing.close({ timeout: 0 });
another.destroy();
console.log(await register.metrics());
`;

/** Of each exposed series, its labels: `_bucket` of a histogram is one of its own. */
function exposed(scraped: string): Map<string, Set<string>> {
  const series = new Map<string, Set<string>>();
  for (const [, name = '', labels = ''] of scraped.matchAll(/^(redis_lock_\w+)\{(.*)\} /gm)) {
    const known = series.get(name) ?? new Set();
    for (const [, label = ''] of labels.matchAll(/(\w+)="/g)) known.add(label);
    series.set(name, known);
  }
  return series;
}

const metricsIn = (query: string) => [...query.matchAll(/redis_lock_\w+/g)].map(([name]) => name);

describePrivate('docs/grafana-dashboard.json', () => {
  let server: RedisServer;
  let folder: ProgramFolder;
  let series: Map<string, Set<string>>;

  beforeAll(async () => {
    server = await startRedis({ port: true });
    folder = await ProgramFolder.create('dashboard', server);
    const page = programsOf('docs/observability.md').find(({ code }) => code.includes("from 'prom-client'"));
    if (page === undefined) throw new Error('The page has no program for prom-client');
    const script = await folder.script({ ...page, code: page.code + SCRAPE });
    const { stdout } = await promisify(execFile)(process.execPath, [script], { timeout: 20_000 });
    series = exposed(stdout);
  });

  afterAll(async () => {
    await server.stop();
    await folder.remove();
  });

  it('queries only what prom-client exposes as the page says, by labels that it has', () => {
    expect(QUERIES.flatMap(metricsIn).filter((name) => !series.has(name))).toEqual([]);
    for (const { expr, legendFormat } of TARGETS) {
      const [by = ''] = [...expr.matchAll(/by \(([^)]+)\)/g)].map(([, labels]) => labels);
      const selected = [...expr.matchAll(/(\w+)=~/g)].map(([, label]) => label);
      const shown = [...legendFormat.matchAll(/\{\{(\w+)\}\}/g)].map(([, label]) => label);
      const [name = ''] = metricsIn(expr);
      expect([...(series.get(name) ?? [])]).toEqual(expect.arrayContaining([...by.split(', '), ...selected, ...shown]));
    }
  });

  it('queries every metric that prom-client exposes: of a histogram its buckets', () => {
    const queried = new Set(QUERIES.flatMap(metricsIn));
    const names = [...series.keys()].filter((name) => !/_(sum|count)$/.test(name));
    expect(names.filter((name) => !queried.has(name))).toEqual([]);
    expect(names).toHaveLength(6);
  });

  it('queries the metrics of instrumentLocks too, under the names that a collector gives them', () => {
    const metrics = metricsOfInstrumentLocks();
    const documented = tableBelow('docs/observability.md', 'OpenTelemetry', 'metric').map(([cell = '']) =>
      codeSpans(cell),
    );
    expect(documented.flat().sort()).toEqual([...metrics.keys()].sort());
    expect(new Set([...metrics.values()])).toEqual(new Set(QUERIES.flatMap(metricsIn)));
  });
});

/** The names for Prometheus, by the names of the metrics: with the unit, and with what says the kind. */
function metricsOfInstrumentLocks(): Map<string, string> {
  const created = new Map<string, string>();
  const instrument = { add: () => undefined, record: () => undefined };
  const create = (suffix: string) => (name: string, options?: MetricOptions) => {
    const unit = options?.unit === 's' ? '_seconds' : '';
    created.set(name, `${name.replaceAll('.', '_')}${unit}${suffix}`);
    return instrument;
  };
  const createHistogram = create('_bucket');
  const meter = { createHistogram, createCounter: create('_total'), createUpDownCounter: create('') };
  instrumentLocks({ meter: meter as unknown as Meter })();
  return created;
}
