import { type Compared, medianAndP99, noSamples, type Samples } from './comparison.js';
import type { PlainClient } from './plain-client.js';
import { nodeData, nodePath } from './registered-nodes.js';

/** A tree that somebody watches, and somebody else changes. */
export interface WatchedTree {
  /** Writes to it, in a session of its own. */
  readonly writer: PlainClient;
  /** Resolves in the moment in which the watcher reports that the node has come, changed or gone. */
  readonly reported: (nodeId: number) => Promise<void>;
  /** Resolves once the watcher's session has nothing under way: its watches stand. */
  readonly settled: () => Promise<unknown>;
}

export interface PropagationOptions {
  readonly plain: WatchedTree;
  readonly ours: WatchedTree;
  /** Node ids 0 … standing - 1 are there all the time; those behind them come and go. */
  readonly standing: number;
  readonly rounds: number;
  readonly warmUp: number;
}

const KINDS = ['changed', 'come', 'gone'] as const;
type Kind = (typeof KINDS)[number];

/**
 * How long a change takes to be reported, from when its request is sent: changed data, new nodes, removed
 * ones, in turns on both trees.
 */
export async function propagation({
  plain,
  ours,
  standing,
  rounds,
  warmUp,
}: PropagationOptions): Promise<Compared[]> {
  const delays: Record<Kind, Samples> = { changed: noSamples(), come: noSamples(), gone: noSamples() };
  const writes = noSamples();
  const sides = [
    ['plain', plain],
    ['ours', ours],
  ] as const;
  for (let round = -warmUp; round < rounds; round += 1) {
    for (const kind of KINDS) {
      const nodeId = (kind === 'changed' ? 0 : standing) + ((round + warmUp) % standing);
      for (const [side, tree] of round % 2 === 0 ? sides : [...sides].reverse()) {
        const { delayMs, writeMs } = await change(tree, kind, nodeId, round + warmUp + 2);
        if (round < 0) continue;
        delays[kind][side].push(delayMs);
        writes[side].push(writeMs);
      }
    }
  }
  return [
    ...medianAndP99('changed data', delays.changed),
    ...medianAndP99('a new node', delays.come),
    ...medianAndP99('a removed node', delays.gone),
    ...medianAndP99('the write alone (the same client)', writes),
  ];
}

async function change(
  tree: WatchedTree,
  kind: Kind,
  nodeId: number,
  version: number,
): Promise<{ delayMs: number; writeMs: number }> {
  const { writer, reported, settled } = tree;
  await settled();
  const path = nodePath(nodeId);
  const seen = reported(nodeId).then(() => performance.now());
  const begun = performance.now();
  const written = write(writer, kind, path, nodeData(nodeId, version)).then(() => performance.now());
  const [seenAt, writtenAt] = await Promise.all([seen, written]);
  return { delayMs: seenAt - begun, writeMs: writtenAt - begun };
}

function write(writer: PlainClient, kind: Kind, path: string, data: string): Promise<unknown> {
  if (kind === 'changed') return writer.setData(path, data);
  return kind === 'come' ? writer.create(path, data) : writer.remove(path);
}
