import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { beforeAll, describe, expect, it } from '@jest/globals';
import type { Meter, MetricOptions } from '@opentelemetry/api';
import { PrometheusExporter, PrometheusSerializer } from '@opentelemetry/exporter-prometheus';
import { MeterProvider } from '@opentelemetry/sdk-metrics';
import { parser } from '@prometheus-io/lezer-promql';
import { parse } from 'yaml';
import { instrumentLocks } from '../../../lib/integrations/opentelemetry';
import { ifBuilt } from '../../support/built-package';
import { describePrivate } from '../../support/private-redis';
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
import { channel } from 'node:diagnostics_channel';
const another = createClient({ url: '${ADDRESSES.url}' });
await another.connect();
const losing = new RedisLockRegistry(another, { registryKey: 'losing' });
const lease = await losing.obtain('key').lock();
await losing.obtain('key').forceUnlock();
await lease.renew().catch(() => undefined);
await losing.close({ timeout: 0 });
channel('redis-lock-registry:warning').publish({ registryKey: 'losing', lockType: 'spin', warning: { code: 'LONG_WAIT' } });
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

/** What each selector of a query finds: a name, or a pattern of names. */
function selectorsIn(query: string): RegExp[] {
  const patterns = [...query.matchAll(/__name__=~"([^"]+)"/g)].map(([, pattern]) => pattern);
  const names = [...query.replaceAll(/"[^"]*"/g, '').matchAll(/redis_lock_\w+/g)].map(([name]) => name);
  return [...patterns, ...names].map((pattern) => new RegExp(`^${pattern}$`));
}

const SELECTORS = QUERIES.flatMap(selectorsIn);

/** Names of series that no query asks for, and queries that ask for no series. Of a histogram, the buckets. */
function mismatches(series: Iterable<string>): { unasked: string[]; empty: RegExp[] } {
  const names = [...series].filter((name) => !/_(sum|count)$/.test(name));
  return {
    unasked: names.filter((name) => !SELECTORS.some((selector) => selector.test(name))),
    empty: SELECTORS.filter((selector) => !names.some((name) => selector.test(name))),
  };
}

const NO_MISMATCH = { unasked: [], empty: [] };

/** Whether Prometheus would take it: Grafana puts in its variables first. */
function isQuery(text: string): boolean {
  const tree = parser.parse(text.replaceAll('$__rate_interval', '5m'));
  let isValid = true;
  tree.iterate({
    enter: ({ type }) => {
      if (type.isError) isValid = false;
    },
  });
  return isValid;
}

ifBuilt(describePrivate)('docs/grafana-dashboard.json', () => {
  const programs = ProgramFolder.install('dashboard');
  let series: Map<string, Set<string>>;

  beforeAll(async () => {
    const page = programsOf('docs/observability.md').find(({ code }) => code.includes("from 'prom-client'"));
    if (page === undefined) throw new Error('The page has no program for prom-client');
    const script = await programs.folder.script({ ...page, code: page.code + SCRAPE });
    const { stdout } = await promisify(execFile)(process.execPath, [script], { timeout: 20_000 });
    series = exposed(stdout);
  });

  it('docs/grafana-dashboard.json queries what prom-client exposes as the page says, all of it, by labels that it has', () => {
    expect(mismatches(series.keys())).toEqual(NO_MISMATCH);
    expect([...series.keys()].filter((name) => !/_(sum|count)$/.test(name))).toHaveLength(7);
    for (const { expr, legendFormat } of TARGETS) {
      const [by = ''] = [...expr.matchAll(/by \(([^)]+)\)/g)].map(([, labels]) => labels);
      const selected = [...expr.matchAll(/\b(?!__name__)(\w+)=~/g)].map(([, label]) => label);
      const shown = [...legendFormat.matchAll(/\{\{(\w+)\}\}/g)].map(([, label]) => label);
      const [name = ''] = [...series.keys()].filter((name) =>
        selectorsIn(expr).some((selector) => selector.test(name)),
      );
      expect([...(series.get(name) ?? [])]).toEqual(expect.arrayContaining([...by.split(', '), ...selected, ...shown]));
    }
  });

  it('docs/grafana-dashboard.json queries all metrics of instrumentLocks that the page has, as the Prometheus exporter of OpenTelemetry exposes them', async () => {
    const exporter = new PrometheusExporter({ preventServerStart: true });
    const meters = new MeterProvider({ readers: [exporter] });
    const metrics = recordAll(meters.getMeter('test'));
    const rows = tableBelow('docs/observability.md', 'OpenTelemetry', 'metric');
    expect(rows.flatMap(([cell = '']) => codeSpans(cell)).sort()).toEqual(metrics.sort());
    const { resourceMetrics } = await exporter.collect();
    const exported = exposed(new PrometheusSerializer().serialize(resourceMetrics));
    expect([...exported.keys()]).toContain('redis_lock_wait_duration_bucket');
    expect(mismatches(exported.keys())).toEqual(NO_MISMATCH);
    await meters.shutdown();
  });

  it('docs/grafana-dashboard.json has queries that Prometheus takes', () => {
    expect(TARGETS.filter(({ expr }) => !isQuery(expr))).toEqual([]);
    expect(isQuery('sum by (le (rate(x[5m]))')).toBe(false);
  });

  describe('and docs/prometheus-alerts.yml', () => {
    interface Rule {
      readonly alert: string;
      readonly expr: string;
      readonly for?: string;
      readonly labels: { readonly severity: string };
      readonly annotations: { readonly summary: string; readonly description: string };
    }
    const file = parse(readFileSync(join(ROOT, 'docs/prometheus-alerts.yml'), 'utf8')) as {
      readonly groups: readonly { readonly name: string; readonly rules: readonly Rule[] }[];
    };
    const rules = file.groups.flatMap((group) => group.rules);

    it('docs/prometheus-alerts.yml has four rules, with the fields that Prometheus wants, and no other', () => {
      expect(rules.map(({ alert }) => alert)).toEqual([
        'LockHeldForLong',
        'LockLost',
        'LockRedisSilent',
        'LockCannotBeTaken',
      ]);
      const fields = new Set(rules.flatMap((rule) => Object.keys(rule)));
      expect([...fields].sort()).toEqual(['alert', 'annotations', 'expr', 'for', 'labels']);
    });

    it.each(rules)('$alert is a query on series that there are, and says the labels that it has', (rule) => {
      expect(isQuery(rule.expr)).toBe(true);
      const names = [...rule.expr.matchAll(/redis_lock_\w+/g)].map(([name]) => name);
      expect(names.filter((name) => !series.has(name))).toEqual([]);
      const [, by = ''] = /by \(([^)]+)\)/.exec(rule.expr) ?? [];
      const said = [...rule.annotations.summary.matchAll(/\$labels\.(\w+)/g)].map(([, label]) => label);
      expect(by.split(', ')).toEqual(expect.arrayContaining(said));
      const labels = names.flatMap((name) => [...(series.get(name) ?? [])]);
      expect(labels).toEqual(expect.arrayContaining(by.split(', ')));
    });
  });
});

/** A value of every metric that `instrumentLocks` makes, and the name of each. */
function recordAll(meter: Meter): string[] {
  const names: string[] = [];
  const recording = (create: 'createHistogram' | 'createCounter' | 'createUpDownCounter') => {
    return (name: string, options?: MetricOptions) => {
      const made = meter[create](name, options);
      if ('record' in made) made.record(1, { registry_key: 'orders' });
      else made.add(1, { registry_key: 'orders' });
      names.push(name);
      return made;
    };
  };
  const createHistogram = recording('createHistogram');
  const createCounter = recording('createCounter');
  const recorder = { createHistogram, createCounter, createUpDownCounter: recording('createUpDownCounter') };
  instrumentLocks({ meter: recorder as unknown as Meter })();
  return names;
}
