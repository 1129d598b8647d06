import type { Page } from 'playwright-core';
import type { Hello, ScriptedConsole } from './scripted-console.js';
import { scriptedData } from './scripted-data.js';
import { ScriptedFleet } from './scripted-fleet.js';
import { scriptedServices } from './scripted-services.js';
import { scriptedShards } from './scripted-shards.js';
import { scriptedTree } from './scripted-tree.js';

/** Something worth a picture. */
export interface Scene {
  readonly name: string;
  readonly theme: 'light' | 'dark';
  readonly viewport: { readonly width: number; readonly height: number };
  readonly hello: () => Hello;
  /** What the page of services receives, where it is that page. */
  readonly services?: readonly (readonly [event: string, data: unknown])[];
  /** What happens before the picture is taken. */
  readonly play?: (page: Page, server: ScriptedConsole) => Promise<void>;
}

function three(): ScriptedFleet {
  const fleet = new ScriptedFleet({
    size: 3,
    durationMs: 15_000,
    graceMs: 3_000,
    taskOf: (id) => ['4f0c2a91', 'b7d3e650', '9a21cc07'][id] ?? '',
  });
  for (const { id, taskId } of fleet.nodes) {
    fleet.event('acquired', id, `${taskId} acquired node id ${id} at version 1`, { version: 1, taskId });
  }
  fleet.events = fleet.events.map((event, index) => ({ ...event, at: Date.now() - 95_000 + index * 180 }));
  return fleet;
}

function hello(fleet: ScriptedFleet, own: number | undefined): Hello {
  const nodes = fleet.nodes.filter(({ state }) => state === 'held');
  fleet.discovery = {
    ...{ state: 'ok', problem: null },
    nodes: nodes.map(({ id, version }) => ({ id, version, state: 'ok' })),
  };
  const snapshot = fleet.snapshot();
  const node = own === undefined ? undefined : fleet.nodes[own];
  const instance = node && {
    state: 'held',
    live: true,
    ready: true,
    reason: null,
    nodeId: node.id,
    version: node.version,
    taskId: node.taskId,
    validForMs: node.expiresInMs,
    idWidth: 8,
    discovery: { state: 'ok', problem: null, ready: true },
  };
  return { epoch: 'scene', instance: instance ?? null, ...snapshot, tree: scriptedTree(fleet.nodes) };
}

/** A single node id and three locks, without ZooKeeper. */
function withLocks(): Hello {
  const fleet = new ScriptedFleet({ size: 1, durationMs: 15_000, graceMs: 3_000 });
  const since = Date.now() - 7_500_000;
  const held = { state: 'held', problem: null, once: null, since, until: Date.now() + 11_000 } as const;
  const locks = [
    { ...held, name: 'nightly', holder: '4f0c2a91', token: 7 },
    { ...held, name: 'report', state: 'expired', holder: 'b7d3e650-22aa-4c3e-9f60-5d2a0000000', token: 12 },
    { ...held, name: 'sweep', state: 'released', holder: null, token: 3, since: null, until: null },
  ] as const;
  return { epoch: 'scene', instance: null, ...fleet.snapshot(), locks };
}

/** The store's answers of the last minute. */
async function latencies(server: ScriptedConsole, fleet: ScriptedFleet): Promise<void> {
  for (let index = 0; index < 60; index += 1) {
    const latencyMs = 17 + 6 * Math.sin(index / 3) + (index % 17 === 0 ? 22 : index % 4);
    server.send('store', { ...fleet.snapshot().store, latencyMs: Math.round(latencyMs * 10) / 10 });
  }
}

const calm = three();
const dozen = new ScriptedFleet({ size: 12, durationMs: 15_000, graceMs: 3_000 });
const taken = three();
const thousand = new ScriptedFleet({
  size: 1_000,
  durationMs: 15_000,
  graceMs: 3_000,
  taskOf: (id) => ((id * 2_654_435_761) >>> 0).toString(16).padStart(8, '0'),
});
for (let id = 930; id < 1_000; id += 1) thousand.free(id, id < 960 ? 2 : 0);
for (const id of [77, 412]) thousand.change(id, { expiresInMs: -1_200 });
for (const id of [413, 820]) thousand.change(id, { state: 'expired', expiresInMs: -8_000 });
thousand.change(566, { state: 'unreadable', taskId: null, expiresInMs: null, problem: 'not JSON' });
thousand.change(301, { state: 'evicted', taskId: null, version: 9, expiresInMs: 6_000 });
for (const id of [15, 288, 654, 701, 702]) thousand.change(id, { expiresInMs: 3_200 });
for (const id of [132, 645, 218, 903, 54, 377]) {
  thousand.event('overdue', id, `the lease of node id ${id} has run out`, {});
  thousand.takeOver(id, (id * 40_503).toString(16));
}
thousand.events = thousand.events.map((event, index, all) => ({
  ...event,
  at: Date.now() - (all.length - index) * 4_100,
}));
// A node id that most know of, and some know an older version of.
thousand.nodes = thousand.nodes.map((node) => ({
  ...node,
  knownNodes: node.state === 'held' ? { 645: node.id % 37 === 0 ? 1 : 2 } : {},
}));

/** The pictures of the documentation. */
export const SCENES: readonly Scene[] = [
  {
    name: 'console-three-light',
    theme: 'light',
    viewport: { width: 1280, height: 720 },
    hello: () => hello(calm, 0),
    play: (_page, server) => latencies(server, calm),
  },
  {
    name: 'console-take-over',
    theme: 'light',
    viewport: { width: 1280, height: 720 },
    hello: () => hello(taken, undefined),
    play: async (page, server) => {
      await latencies(server, taken);
      await page.locator('[data-id="1"]').click();
      taken.change(1, { expiresInMs: -2_000 });
      server.send('report', taken.snapshot().report);
      server.send(
        'change',
        taken.event('overdue', 1, 'the lease of node id 1 has run out; it may be taken after 3 s of grace', {
          at: Date.now() - 4_300,
        }),
      );
      const { event } = taken.takeOver(1, 'c58e14d3');
      taken.change(0, { knownNodes: { 1: 2, 2: 1 } });
      server.send('report', taken.snapshot().report);
      server.send('change', { ...event, at: Date.now() });
      await page.getByText('c58e14d3 took over').waitFor();
      await page.waitForTimeout(900);
    },
  },
  {
    name: 'console-shared-data',
    theme: 'light',
    viewport: { width: 1280, height: 900 },
    hello: () => ({
      ...hello(calm, undefined),
      tree: { ...scriptedTree(calm.nodes), data: [scriptedData()] },
    }),
    play: async (page, server) => {
      await latencies(server, calm);
      await page.locator('#data').evaluate((data) => data.scrollIntoView());
    },
  },
  {
    name: 'console-thousand-dark',
    theme: 'dark',
    viewport: { width: 1440, height: 1_000 },
    hello: () => hello(thousand, undefined),
    play: (_page, server) => latencies(server, thousand),
  },
  {
    name: 'console-shards',
    theme: 'dark',
    viewport: { width: 1280, height: 460 },
    hello: () => ({ ...hello(dozen, undefined), shards: scriptedShards(256, 12) }),
    play: async (page, server) => {
      await latencies(server, dozen);
      await page.locator('.shard-map').focus();
      for (let step = 0; step < 8; step += 1) await page.keyboard.press('ArrowRight');
      await page.locator('#shards').evaluate((panel) => panel.scrollIntoView());
    },
  },
  {
    name: 'services-light',
    theme: 'light',
    viewport: { width: 1280, height: 910 },
    hello: () => hello(calm, undefined),
    services: scriptedServices(),
  },
];

/** Others, to look at while one works on the page. */
export const DRAFTS: readonly Scene[] = [
  {
    name: 'services-dark',
    theme: 'dark',
    viewport: { width: 1280, height: 720 },
    hello: () => hello(calm, undefined),
    services: scriptedServices(),
  },
  {
    name: 'services-phone',
    theme: 'light',
    viewport: { width: 360, height: 740 },
    hello: () => hello(calm, undefined),
    services: scriptedServices(),
  },
  {
    name: 'three-dark',
    theme: 'dark',
    viewport: { width: 1280, height: 720 },
    hello: () => hello(calm, 0),
    play: (_page, server) => latencies(server, calm),
  },
  { name: 'phone', theme: 'light', viewport: { width: 360, height: 740 }, hello: () => hello(calm, 0) },
  {
    name: 'phone-details',
    theme: 'light',
    viewport: { width: 360, height: 740 },
    hello: () => hello(thousand, 0),
    play: (page) => page.locator('[data-id="45"]').click(),
  },
  {
    name: 'thousand-selected',
    theme: 'light',
    viewport: { width: 1440, height: 1_000 },
    hello: () => hello(thousand, undefined),
    play: (page) => page.locator('[data-id="645"]').click(),
  },
  {
    name: 'stale',
    theme: 'light',
    viewport: { width: 1280, height: 720 },
    hello: () => hello(calm, 0),
    play: async (page, server) => {
      await server.close();
      await page.locator('#banner').waitFor();
      await page.waitForTimeout(1_200);
    },
  },
  {
    name: 'hundred',
    theme: 'dark',
    viewport: { width: 1280, height: 800 },
    hello: () => hello(new ScriptedFleet({ size: 120, durationMs: 15_000, graceMs: 3_000 }), undefined),
  },
  {
    name: 'locks-phone',
    theme: 'light',
    viewport: { width: 375, height: 1_800 },
    hello: () => withLocks(),
  },
  {
    name: 'locks-dark',
    theme: 'dark',
    viewport: { width: 1280, height: 1_000 },
    hello: () => withLocks(),
    play: (page) => page.locator('[data-id="0"]').click(),
  },
  {
    name: 'help',
    theme: 'light',
    viewport: { width: 1280, height: 720 },
    hello: () => hello(calm, 0),
    play: (page) => page.keyboard.press('?'),
  },
];
