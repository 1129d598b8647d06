import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { dnsMetrics } from '../../../../src/app/dns/dns-metrics.js';
import { NodeMetrics } from '../../../../src/app/http/node-metrics.js';
import { startNodeServer } from '../../../../src/app/http/node-server.js';
import { systemClock } from '../../../../src/core/base/system.js';
import { uniqueIds } from '../../../../src/core/id/lease-ids.js';
import { CLUSTER_DEFAULTS } from '../../../../src/core/lease/model/cluster-config.js';
import { acquire, type ManagedLease } from '../../../../src/node/runtime/acquire.js';
import { NodeMonitor } from '../../../../src/node/runtime/node-monitor.js';
import { packageRoot } from '../../../support/package-root.js';
import { killAll, runCli } from '../../../support/processes.js';
import { type Prometheus, promtool, startPrometheus } from '../../../support/programs/prometheus.js';
import { promqlNames } from '../../../support/programs/promql-names.js';
import { newFolder, removeFolders } from '../cli/run-support.js';

const ALERTS = join(packageRoot, 'infra/prometheus/alerts.yml');
const DASHBOARD = join(packageRoot, 'infra/grafana/nodelease.json');

interface Dashboard {
  readonly panels: readonly {
    readonly title: string;
    readonly targets: readonly { readonly expr: string }[];
  }[];
  readonly templating: {
    readonly list: readonly { readonly name: string; readonly type: string; readonly query: unknown }[];
  };
}

/** A query as Grafana sends it: its variables replaced. */
function sent(query: string): string {
  return query
    .replaceAll('$__rate_interval', '1m')
    .replaceAll('$__interval_ms', '15000')
    .replaceAll(/\$(?:job|instance)\b/g, '.*');
}

/** All queries of the dashboard, by what they are for. */
async function dashboardQueries(): Promise<Map<string, string>> {
  const { panels, templating } = JSON.parse(await readFile(DASHBOARD, 'utf8')) as Dashboard;
  const queries = panels.flatMap(({ title, targets }) =>
    targets.map(({ expr }, index) => [`${title} ${index}`, sent(expr)] as const),
  );
  const variables = templating.list
    .filter(({ type }) => type === 'query')
    .map(({ name, query }) => {
      const text = sent((query as { query: string }).query);
      return [name, /^label_values\((.*), \w+\)$/.exec(text)?.[1] ?? text] as const;
    });
  return new Map([...queries, ...variables]);
}

/** The names that a scrape has, with the names of a histogram's samples. */
function namesIn(text: string): Map<string, string> {
  const types = [...text.matchAll(/^# TYPE (\S+) (\S+)$/gm)].map(
    ([, name = '', type = '']) => [name, type] as const,
  );
  return new Map(types);
}

function isKnown(name: string, types: ReadonlyMap<string, string>): boolean {
  const [, base = ''] = /^(.*)_(?:bucket|sum|count)$/.exec(name) ?? [];
  return types.has(name) || types.get(base) === 'histogram';
}

describe('a process that reports its node id to Prometheus', () => {
  let lease: ManagedLease;
  let metrics: NodeMetrics;
  let server: Awaited<ReturnType<typeof startNodeServer>>;
  beforeEach(async () => {
    const monitor = new NodeMonitor();
    metrics = new NodeMetrics({ monitor, clock: systemClock });
    server = await startNodeServer({
      clock: systemClock,
      monitor,
      metrics,
      listen: { host: '127.0.0.1', port: 0 },
    });
    lease = await acquire({
      store: 'memory:',
      nodes: 2,
      durationMs: 9_000,
      taskId: 'metrics',
      monitor,
      onLost: 'signal',
    });
    (await uniqueIds(lease)).next();
  });
  afterEach(async () => {
    await lease.release();
    metrics.close();
    await server.close();
  });
  const scrape = async () => {
    const response = await fetch(`${server.url}/metrics`);
    expect([response.status, response.headers.get('content-type')]).toEqual([
      200,
      'text/plain; version=0.0.4; charset=utf-8',
    ]);
    return response.text();
  };

  it('is read by the official parser without any complaint', async () => {
    const text = await scrape();
    expect(await promtool(['check', 'metrics'], text)).toEqual({ code: 0, output: '' });
    // What it complains of, so that the silence above is worth something.
    const worse = text
      .replace('# HELP nodelease_ready ', '# COMMENT ')
      .replaceAll('nodelease_lease_losses_total', 'nodelease_lease_losses');
    expect((await promtool(['check', 'metrics'], worse)).code).not.toBe(0);
  });

  it('is described in docs/operate/metrics.md: every metric with its type and labels, and no other', async () => {
    const dns = dnsMetrics(() => 0);
    dns.count({ type: 'other', code: 'NOERROR', truncated: false });
    const text = `${await scrape()}\n${await dns.text()}`;
    const types = [...namesIn(text)].filter(([name]) => name.startsWith('nodelease_'));
    const docs = await readFile(join(packageRoot, 'docs/operate/metrics.md'), 'utf8');
    const rows = [...docs.matchAll(/^\| `(nodelease_(?!cluster_)\w+)` \| (\w+) \|/gm)].map(
      ([, name = '', type = '']) => [name, type] as const,
    );
    expect(new Map(rows)).toEqual(new Map(types));
    for (const [, name = '', label = '', value = ''] of text.matchAll(
      /^(nodelease_\w+)\{(\w+)="([^"]+)"/gm,
    )) {
      if (label === 'le') continue;
      const row = docs.split('\n').find((line) => line.startsWith(`| \`${name}\``));
      expect(row).toContain(`\`${label}\``);
      if (label !== 'version') expect(row).toContain(`\`${value}\``);
    }
  });

  it('is what the dashboard and the alerts ask for: no query names a metric that does not exist', async () => {
    const types = namesIn(await scrape());
    const rules = await readFile(ALERTS, 'utf8');
    const expressions = [...rules.matchAll(/^ {8}expr: (?:\|\n((?: {10}.*\n)+)|(.*)\n)/gm)].map(
      ([, block, line]) => block ?? line ?? '',
    );
    expect(expressions).toHaveLength([...rules.matchAll(/- alert: /g)].length);
    const queries = [...(await dashboardQueries()).values(), ...expressions];
    const asked = new Set(queries.flatMap(promqlNames));
    expect([...asked].filter((name) => !isKnown(name, types))).toEqual([]);
    expect(asked.size).toBeGreaterThan(15);
    const misnamed =
      'sum by (reason) (rate(nodelease_lease_lost_total{reason="taken"}[1m])) / on (job) nodelease_lease_helt > bool 1';
    expect(promqlNames(misnamed).filter((name) => !isKnown(name, types))).toEqual([
      'nodelease_lease_lost_total',
      'nodelease_lease_helt',
    ]);
  });

  it('is scraped by a real Prometheus, which understands every query of the dashboard, and every alert rule', async () => {
    const prometheus = await startPrometheus({ target: new URL(server.url).host, rules: [ALERTS] });
    try {
      await vectorOf(prometheus, 'up == 1');
      await vectorOf(prometheus, 'nodelease_lease_held == 1');
      // Two samples, for the rates.
      await vectorOf(prometheus, 'rate(nodelease_lease_renewals_total{outcome="renewed"}[1m]) > 0');
      expect(await valuesOf(prometheus, 'nodelease_lease_version')).toEqual([lease.version]);
      expect(await valuesOf(prometheus, 'nodelease_ids_issued_total')).toEqual([1]);
      const remaining = await valuesOf(prometheus, 'nodelease_lease_remaining_seconds');
      expect(remaining[0]).toBeGreaterThan(0);
      expect(remaining[0]).toBeLessThanOrEqual(9);
      const queries = [...(await dashboardQueries())];
      const empty = async () => {
        const counts = await Promise.all(
          queries.map(async ([, query]) => (await valuesOf(prometheus, query)).length),
        );
        return queries.filter((_, index) => counts[index] === 0).map(([title]) => title);
      };
      // Some have an answer a scrape later than others. None has only what is not there without a take-over,
      // or without ZooKeeper.
      await expect
        .poll(async () => (await empty()).filter((title) => !title.startsWith('Discovery')))
        .toEqual([]);
      // Each process is one row of the time line, whatever states it has had: no label of the state is left.
      const { result: rows } = (await prometheus.api(
        `query?query=${encodeURIComponent(new Map(queries).get('State 0') ?? '')}`,
      )) as { result: { metric: object }[] };
      expect(rows.map(({ metric }) => metric)).toEqual([{ instance: new URL(server.url).host }]);
      const { groups } = (await prometheus.api('rules')) as {
        groups: { rules: { name: string; health: string; lastError?: string }[] }[];
      };
      const ill = groups.flatMap(({ rules }) => rules).filter(({ health }) => health === 'err');
      expect(ill).toEqual([]);
      const { alerts } = (await prometheus.api('alerts')) as {
        alerts: { labels: { alertname: string }; state: string }[];
      };
      expect(alerts.filter(({ state }) => state === 'firing').map(({ labels }) => labels.alertname)).toEqual(
        [],
      );
    } finally {
      await prometheus.stop();
    }
  });

  it('looks for leases that run out every sixth of the usual duration, whatever the interval of the other rules is', async () => {
    const [, group = ''] = (await readFile(ALERTS, 'utf8')).split('- name: nodelease-running-out\n');
    expect(group.match(/- alert: (\w+)/g)).toEqual(['- alert: NodeleaseLeaseRunningOut']);
    const [, interval] = /^ {4}interval: (\d+)s$/m.exec(group) ?? [];
    expect(Number(interval) * 1_000).toBeLessThanOrEqual(CLUSTER_DEFAULTS.durationMs / 6);
  });

  it('has alert rules that do what their tests say', async () => {
    expect(await promtool(['check', 'rules', ALERTS])).toMatchObject({ code: 0 });
    const { code, output } = await promtool([
      'test',
      'rules',
      join(packageRoot, 'infra/prometheus/alerts.test.yml'),
    ]);
    expect(output).toMatch(/SUCCESS/);
    expect(code).toBe(0);
  });
});

describe('nodelease run --http', () => {
  afterEach(async () => {
    await killAll();
    removeFolders();
  });

  it('reports the same metrics, which the official parser reads without any complaint', async () => {
    const command = ['sh', '-c', 'echo "at $NODELEASE_URL"; exec sleep 60'];
    const run = runCli([
      'run',
      '--store',
      `file:${newFolder()}`,
      '--nodes',
      '3',
      '--http',
      '127.0.0.1:0',
      '--',
      ...command,
    ]);
    const [, url] = await run.waitForOutput(/^at (\S+)$/m, 30_000);
    const text = await (await fetch(`${url}/metrics`)).text();
    expect(await promtool(['check', 'metrics'], text)).toEqual({ code: 0, output: '' });
    expect(text).toMatch(/^nodelease_lease_held 1$/m);
    expect(text).toMatch(/^nodelease_lease_node_id 0$/m);
    expect(text).toMatch(/^nodelease_lease_acquisition_requests [1-9]\d*$/m);
    const own = new NodeMetrics({ monitor: new NodeMonitor(), clock: systemClock });
    const library = namesIn(await own.text());
    own.close();
    expect([...namesIn(text).keys()].sort()).toEqual([...library.keys()].sort());
  });
});

async function valuesOf(prometheus: Prometheus, query: string): Promise<number[]> {
  const { result } = (await prometheus.api(`query?query=${encodeURIComponent(query)}`)) as {
    result: { value: [number, string] }[];
  };
  return result.map(({ value }) => Number(value[1]));
}

/** Waits until a query has an answer. */
async function vectorOf(prometheus: Prometheus, query: string): Promise<void> {
  for (const deadline = Date.now() + 60_000; (await valuesOf(prometheus, query)).length === 0; ) {
    if (Date.now() > deadline) throw new Error(`no answer to ${query}`);
    await sleep(100);
  }
}
