import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';
import { context, SpanStatusCode, trace } from '@opentelemetry/api';
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks';
import {
  BasicTracerProvider,
  InMemorySpanExporter,
  type ReadableSpan,
  SimpleSpanProcessor,
} from '@opentelemetry/sdk-trace-base';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, inject, it } from 'vitest';
import { systemClock, systemRandom } from '../../../../src/core/base/system.js';
import { evictHolder } from '../../../../src/core/lease/operate/evict.js';
import { StoreSession } from '../../../../src/core/lease/session/store-session.js';
import { openStore } from '../../../../src/core/store/open-store.js';
import { packageRoot } from '../../../support/package-root.js';
import { killAll, runCli } from '../../../support/processes.js';
import { uniqueChroot } from '../../../support/zookeeper.js';

// A worker thread is started from its compiled form, so everything here is.
const {
  acquire,
  NodeMonitor,
  systemClock: clock,
  uniqueIds,
} = (await import(join(packageRoot, 'dist/index.js'))) as typeof import('../../../../src/index.js');
const { NodeMetrics } = (await import(
  join(packageRoot, 'dist/app/http/node-metrics.js')
)) as typeof import('../../../../src/app/http/node-metrics.js');

const DURATION_MS = 10_000;
const SDK = pathToFileURL(join(packageRoot, 'test/fixtures/programs/spans-to-file.mjs')).href;
const exporter = new InMemorySpanExporter();

let folder: string;
beforeAll(() => {
  context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());
  trace.setGlobalTracerProvider(
    new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] }),
  );
});
afterAll(() => {
  trace.disable();
  context.disable();
});
beforeEach(async () => {
  exporter.reset();
  folder = await mkdtemp(join(tmpdir(), 'nodelease-monitor-'));
});
afterEach(async () => {
  await killAll();
  await rm(folder, { recursive: true, force: true, maxRetries: 5 });
});

const spans = (name: string): ReadableSpan[] =>
  exporter.getFinishedSpans().filter((span) => span.name === name);

async function until(what: () => boolean | Promise<boolean>): Promise<void> {
  for (const deadline = Date.now() + 60_000; !(await what()); ) {
    if (Date.now() > deadline) throw new Error(`not so within 60 s: ${what}`);
    await sleep(20);
  }
}

/** The value of one sample. */
async function sample(metrics: InstanceType<typeof NodeMetrics>, name: string): Promise<number> {
  const line = (await metrics.text()).split('\n').find((text) => text.startsWith(`${name} `));
  return Number(line?.slice(name.length + 1));
}

type Kind = 'inline' | 'worker' | 'zookeeper';

/** A node id of that kind, with everything that watches it. */
async function hold(kind: Kind) {
  const monitor = new NodeMonitor();
  const metrics = new NodeMetrics({ monitor, clock });
  const zookeeper = { connect: `${inject('zookeeper').connect}${uniqueChroot()}`, sessionTimeoutMs: 7_500 };
  const lease = await acquire({
    ...{ taskId: 'me', onLost: 'signal', monitor },
    ...(kind === 'zookeeper'
      ? { provider: 'zookeeper', zookeeper }
      : { store: `file:${folder}`, nodes: 1, durationMs: DURATION_MS, keeper: kind }),
  });
  return { monitor, metrics, lease };
}

describe.each<Kind>(['inline', 'worker', 'zookeeper'])('a node id whose lease is kept by: %s', (kind) => {
  it('is reported by monitor, metrics and spans from its acquisition to its release', async () => {
    const { monitor, metrics, lease } = await hold(kind);
    try {
      const { id, version } = lease;
      expect(monitor.health()).toMatchObject({
        state: 'held',
        live: true,
        ready: true,
        reason: null,
        nodeId: id,
        version,
        taskId: 'me',
      });
      expect(monitor.health().deadline).toBe(lease.deadline);
      await until(
        async () => (await sample(metrics, 'nodelease_lease_renewals_total{outcome="renewed"}')) >= 2,
      );
      expect(await sample(metrics, 'nodelease_lease_held')).toBe(1);
      expect(await sample(metrics, 'nodelease_lease_version')).toBe(version);
      expect(await sample(metrics, 'nodelease_lease_remaining_seconds')).toBeGreaterThan(0);
      await (await uniqueIds(lease)).nextAsync();
      expect(await sample(metrics, 'nodelease_ids_issued_total')).toBe(1);
      expect(Math.abs(await sample(metrics, 'nodelease_store_clock_offset_seconds'))).toBeLessThan(60);
      const facts = { 'nodelease.node_id': id, 'nodelease.version': version, 'nodelease.task_id': 'me' };
      expect(spans('nodelease.acquire')).toMatchObject([{ attributes: facts }]);
      await until(() => spans('nodelease.renew').length >= 2);
      for (const { attributes, parentSpanContext } of spans('nodelease.renew')) {
        expect(attributes).toMatchObject(facts);
        expect(parentSpanContext).toBeUndefined();
      }
      const releasing = lease.release();
      expect(monitor.health()).toMatchObject({ live: true, ready: false });
      await releasing;
      expect(monitor.health()).toMatchObject({ state: 'released', live: true, ready: false, deadline: null });
      expect(await sample(metrics, 'nodelease_lease_releases_total{outcome="released"}')).toBe(1);
      expect(await sample(metrics, 'nodelease_lease_held')).toBe(0);
      expect(spans('nodelease.release')).toMatchObject([
        { attributes: facts, status: { code: SpanStatusCode.UNSET } },
      ]);
    } finally {
      await lease.release();
      metrics.close();
    }
  });
});

describe.each<'inline' | 'worker'>(['inline', 'worker'])(
  'a node id that is taken away, kept by: %s',
  (kind) => {
    it('is lost for all of them, once, with the same reason', async () => {
      const { monitor, metrics, lease } = await hold(kind);
      const store = await openStore(`file:${folder}`, {
        clock: systemClock,
        random: systemRandom,
        requestTimeoutMs: 5_000,
      });
      await evictHolder(new StoreSession(store, systemClock, 5_000), lease.id);
      await until(() => lease.signal.aborted);
      expect(monitor.health()).toMatchObject({ state: 'lost', live: false, ready: false });
      expect(monitor.health().reason).toMatch(/by somebody else/);
      expect(await sample(metrics, 'nodelease_lease_losses_total{reason="taken"}')).toBe(1);
      if (kind === 'worker') {
        await until(() =>
          spans('nodelease.renew').some(({ status }) => status.code === SpanStatusCode.ERROR),
        );
      }
      await lease.release();
      expect(monitor.health().state).toBe('lost');
      metrics.close();
      await store.close();
    });
  },
);

describe('the command', () => {
  const untilRenewed = 'until grep -q nodelease.renew "$SPANS_FILE"; do sleep 0.05; done';
  const command = ['run', '--nodes', '1', '--duration', '10s', '--', 'sh', '-c', untilRenewed];
  const environment = (own: Record<string, string>) => ({
    cwd: folder,
    env: { NODELEASE_STORE: 'file:.nodelease', SPANS_FILE: join(folder, 'spans'), ...own },
  });

  it('traces where an SDK was loaded before it', async () => {
    const run = runCli(command, environment({ NODE_OPTIONS: `--import ${SDK}` }));
    expect(await run.exit).toEqual({ code: 0, signal: null });
    const lines = (await readFile(join(folder, 'spans'), 'utf8')).trim().split('\n');
    const reported = lines.map(
      (line) => JSON.parse(line) as { name: string; attributes: Record<string, unknown> },
    );
    const names = reported.map(({ name }) => name);
    expect([names[0], names.at(-1)]).toEqual(['nodelease.acquire', 'nodelease.release']);
    expect(names.slice(1, -1).every((name) => name === 'nodelease.renew')).toBe(true);
    expect(names.length).toBeGreaterThan(2);
    expect(reported[0]?.attributes).toMatchObject({
      'nodelease.node_id': 0,
      'nodelease.version': 1,
      'nodelease.from': 'vacant',
    });
  });

  it('has an SDK that exports in batches export the last of them before it ends', async () => {
    const run = runCli(
      ['run', '--nodes', '1', '--', 'true'],
      environment({ NODE_OPTIONS: `--import ${SDK}`, SPANS: 'batches' }),
    );
    expect(await run.exit).toEqual({ code: 0, signal: null });
    const lines = (await readFile(join(folder, 'spans'), 'utf8')).trim().split('\n');
    const names = lines.map((line) => (JSON.parse(line) as { name: string }).name);
    expect(names).toEqual(['nodelease.acquire', 'nodelease.release']);
  });

  it('does not wait for long for an SDK that exports nothing', async () => {
    const run = runCli(
      ['run', '--nodes', '1', '--', 'true'],
      environment({ NODE_OPTIONS: `--import ${SDK}`, SPANS: 'never' }),
    );
    expect(await run.exit).toEqual({ code: 0, signal: null });
    expect(run.stderr()).toContain('exporting the spans took more than 500 ms: not waiting for it');
  });
});
