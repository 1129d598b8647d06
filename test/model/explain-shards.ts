import {
  type Bounds,
  begin,
  type Change,
  end,
  firstState,
  follow,
  handOn,
  NO_OWNER,
  type State,
  start,
  write,
} from './shards-model.js';
import type { ShardAct, ShardTrace, Tenure } from './shards-trace.js';

type Of<Kind extends ShardAct['kind']> = Extract<ShardAct, { kind: Kind }>;

/** What the model says of a trace. */
export interface ShardsExplanation {
  /** How many acts have a path. */
  readonly acts: number;
  /** How many traces are whole. */
  readonly maps: number;
  /** How many traces were ended, by what the model does not have. */
  readonly leftOut: Readonly<Record<string, number>>;
  /** The first act that is on no path. */
  readonly failure: { readonly at: number; readonly text: string } | undefined;
}

/**
 * Looks for paths of shards.pml on which all acts of the traces happen. A trace has every step but three: evictions,
 * hand-ons that are sent again, and those of shards that never ran here. No other step needs evictions. The hand-ons are
 * taken just before the write that they explain, since only that write needs them. So one state at a time is enough.
 */
export function explainShards(traces: readonly ShardTrace[]): ShardsExplanation {
  const leftOut: Record<string, number> = {};
  let [explained, maps] = [0, 0];
  for (const { acts, leftOut: what } of traces) {
    const path = new Path(acts);
    const failed = acts.find((act) => !path.take(act));
    explained += failed ? acts.indexOf(failed) : acts.length;
    if (failed !== undefined) {
      const text = `${said(failed)}, which is on no path of shards.pml; before that, ${path.said(failed)}`;
      return { acts: explained, maps, leftOut, failure: { at: failed.at, text } };
    }
    if (what === undefined) maps += 1;
    else leftOut[what] = (leftOut[what] ?? 0) + 1;
  }
  return { acts: explained, maps, leftOut, failure: undefined };
}

class Path {
  #state: State;
  readonly #bounds: Bounds;
  /** By node: its id. */
  readonly #ids: readonly number[];
  /** By id: the version of each tenure. The first tenure of the model is over before it does anything. */
  readonly #versions = new Map<number, number[]>();
  /** By how much epochs and tokens are higher than in the model, whose first map has epoch 1. */
  #floor = 0;
  #isFollowed = false;

  constructor(acts: readonly ShardAct[]) {
    let shards = 0;
    for (const act of acts) {
      if (act.kind === 'writes') shards = act.shards.length;
      if (act.kind !== 'begins') continue;
      const { id, version } = act.tenure;
      this.#versions.set(id, [...(this.#versions.get(id) ?? [0]), version]);
    }
    this.#ids = [...this.#versions.keys()];
    const tenures = Math.max(0, ...[...this.#versions.values()].map(({ length }) => length));
    const bounds = { nodes: this.#ids.length, tenures, shards, epochs: Number.POSITIVE_INFINITY };
    this.#bounds = bounds;
    this.#state = this.#ids.reduce<State>(
      (state, _, node) => end(bounds, state, node) ?? state,
      firstState(bounds),
    );
  }

  /** Whether the act is possible, which then happens. */
  take(act: ShardAct): boolean {
    const next = act.kind === 'writes' ? this.#afterWrite(act) : this.#after(act);
    this.#state = next ?? this.#state;
    return next !== undefined;
  }

  #after(act: Exclude<ShardAct, Of<'writes'>>): State | undefined {
    const state = this.#state;
    const node = this.#ids.indexOf(act.tenure.id);
    if (act.kind === 'begins') return begin(this.#bounds, state, node);
    if (!this.#isPresent(act.tenure)) return act.kind === 'starts' ? undefined : state;
    switch (act.kind) {
      case 'ends':
        return end(this.#bounds, state, node);
      case 'follows':
        this.#isFollowed = true;
        // Before the first map of this series there was none, or a frozen one (T10).
        return act.epoch <= this.#floor ? state : follow(state, node, act.epoch - this.#floor);
      case 'starts': {
        const next = start(this.#bounds, state, node, act.shard);
        return next && this.#runs(next, node, act) ? next : undefined;
      }
      case 'stops':
        return this.#runs(state, node, act) ? handOn(this.#bounds, state, node, act.shard) : undefined;
    }
  }

  #afterWrite({ epoch, shards, tenure }: Of<'writes'>): State | undefined {
    const state = this.#state;
    if (!this.#isFollowed && shards.every(({ owner }) => owner === undefined)) {
      // The first map of a series, if no task has followed one before (T10).
      this.#floor = epoch - 1;
      return state;
    }
    if (epoch !== this.#floor + state.maps.length + 1) return undefined;
    const content = shards.map((_, shard) => this.#change(shards, shard, epoch));
    if (!content.every((change) => change !== undefined)) return undefined;
    const byAny = write(this.#bounds, state, undefined, content);
    if (byAny !== undefined || tenure === undefined || !this.#isPresent(tenure)) return byAny;
    const node = this.#ids.indexOf(tenure.id);
    const sent = content.reduce<State>(
      (before, change, shard) => (change === 'copied' ? before : this.#withHandOn(before, node, shard)),
      state,
    );
    return write(this.#bounds, sent, node, content);
  }

  /** What a write does with a shard; undefined for what no write may do (T3). */
  #change(shards: Of<'writes'>['shards'], shard: number, epoch: number): Change | undefined {
    const { owner, token } = shards[shard] as (typeof shards)[number];
    const before = this.#state.maps.at(-1)?.[shard];
    if (before === undefined) return undefined;
    const given = owner === undefined ? NO_OWNER : this.#tenure(owner);
    if (given === before.owner && (given === NO_OWNER || token === this.#floor + before.token))
      return 'copied';
    return given === NO_OWNER || token === epoch ? given : undefined;
  }

  /** After a hand-on of what does not run, where there can be one: no act shows it. */
  #withHandOn(state: State, node: number, shard: number): State {
    const runs = (state.nodes[node]?.work[shard]?.runs ?? 0) > 0;
    return (runs ? undefined : handOn(this.#bounds, state, node, shard)) ?? state;
  }

  #isPresent({ id, version }: Tenure): boolean {
    const node = this.#state.nodes[this.#ids.indexOf(id)];
    return node !== undefined && node.lease !== 'over' && this.#versions.get(id)?.[node.version] === version;
  }

  #runs({ nodes }: State, node: number, { shard, token }: Of<'starts' | 'stops'>): boolean {
    return nodes[node]?.work[shard]?.runs === token - this.#floor;
  }

  /** Undefined for one that has never begun. */
  #tenure({ id, version }: Tenure): number | undefined {
    const own = this.#versions.get(id)?.indexOf(version) ?? -1;
    return own < 0 ? undefined : this.#ids.indexOf(id) * this.#bounds.tenures + own;
  }

  /** What the state has of the node of an act, and of its shards. */
  said(act: ShardAct): string {
    const { maps, nodes } = this.#state;
    const real = (epoch: number) => epoch && this.#floor + epoch;
    const node = act.tenure && nodes[this.#ids.indexOf(act.tenure.id)];
    const shards = (maps.at(-1) ?? []).flatMap(({ owner, token }, shard) => {
      const isChanged = act.kind === 'writes' && this.#change(act.shards, shard, act.epoch) !== 'copied';
      if (!isChanged && !('shard' in act && act.shard === shard)) return [];
      const { runs = 0, givenUp = 0 } = node?.work[shard] ?? {};
      const own = `it runs ${real(runs)} and has given up ${real(givenUp)}`;
      return `shard ${shard} is that of ${this.#named(owner)} with token ${real(token)}, ${own}`;
    });
    const own = node && `its node follows ${real(node.followed)}, its lease is ${node.lease}`;
    return [`the map has epoch ${real(maps.length)}`, own ?? [], shards.slice(0, 3)].flat().join('; ');
  }

  #named(tenure: number): string {
    if (tenure === NO_OWNER) return 'no node';
    const id = this.#ids[Math.floor(tenure / this.#bounds.tenures)] ?? -1;
    return named({ id, version: this.#versions.get(id)?.[tenure % this.#bounds.tenures] ?? -1 });
  }
}

function said(act: ShardAct): string {
  const who = act.tenure ? named(act.tenure) : 'an operator';
  switch (act.kind) {
    case 'begins':
    case 'ends':
      return `${who} ${act.kind} its tenure`;
    case 'follows':
      return `${who} follows epoch ${act.epoch}`;
    case 'starts':
    case 'stops':
      return `${who} ${act.kind} shard ${act.shard} with token ${act.token}`;
    case 'writes': {
      const owners = act.shards.map(({ owner, token }) => `${owner ? named(owner) : 'none'} ${token}`);
      return `${who} writes epoch ${act.epoch}, with owners and tokens: ${owners.join(', ')}`;
    }
  }
}

const named = ({ id, version }: Tenure): string => `node ${id} version ${version}`;
