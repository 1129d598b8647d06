import type { ShardsExplanation } from './explain-shards.js';
import type { Bounds, ShardMap, State } from './repair-model.js';
import * as model from './repair-model.js';
import type { RepairAct, Tenure } from './shards-trace.js';

type Of<Kind extends RepairAct['kind']> = Extract<RepairAct, { kind: Kind }>;

const BOUNDS: Bounds = { epochs: Number.POSITIVE_INFINITY, damages: Number.POSITIVE_INFINITY };

/** What the model says of a trace. */
export interface RepairExplanation {
  /** How many acts have a path, of all shards. */
  readonly acts: number;
  /** How many repairs have written their first map. */
  readonly repairs: number;
  /** The first act that is on no path. */
  readonly failure: { readonly at: number; readonly text: string } | undefined;
}

/** What both models say. */
export type MapExplanation = ShardsExplanation & RepairExplanation;

/**
 * Looks for paths of shards-repair.pml, one for each shard, on which all acts happen. A write that leaves the shard as
 * it was is no step of its path. What is sent is taken just before the store applies it. So one state at a time is enough.
 */
export function explainRepair(acts: readonly RepairAct[], shards: number): RepairExplanation {
  const repairs = acts.filter((act) => act.kind === 'writes' && act.frozen).length;
  let explained = 0;
  for (let shard = 0; shard < shards; shard += 1) {
    const path = new Path(acts, shard);
    const failed = acts.find((act) => !path.take(act));
    explained += failed ? acts.indexOf(failed) : acts.length;
    if (failed === undefined) continue;
    const text = `shard ${shard}: ${JSON.stringify(failed)} is on no path of shards-repair.pml; before that, ${path.said(failed)}`;
    return { acts: explained, repairs, failure: { at: failed.at, text } };
  }
  return { acts: explained, repairs, failure: undefined };
}

class Path {
  #state: State;
  /** By node. One more never lives: a plan may name a tenure that is over. */
  readonly #ids: readonly number[];
  /** By node: the version of its last tenure. */
  readonly #versions = new Map<number, number>();
  /** By founder. */
  readonly #draws: readonly Of<'draws'>[];
  /** The ends of tenures whose last write is applied later, and of marks that come again. */
  readonly #isPremature = new Set<RepairAct>();

  constructor(
    acts: readonly RepairAct[],
    private readonly shard: number,
  ) {
    this.#ids = [...new Set(acts.flatMap((act) => (act.kind === 'begins' ? act.tenure.id : [])))];
    this.#draws = acts.filter((act) => act.kind === 'draws');
    this.#state = model.firstState(this.#ids.length + 1, this.#draws.length);
    const later = new Set<string>();
    for (const act of acts.toReversed()) {
      const kind = act.kind === 'ends' ? 'writes' : act.kind;
      const name = 'tenure' in act && act.tenure ? `${act.tenure.id}/${act.tenure.version} ${kind}` : '';
      const isEnd = act.kind === 'ends' || (act.kind === 'marks' && act.epoch === undefined);
      if (isEnd && later.has(name)) this.#isPremature.add(act);
      else if (!isEnd) later.add(name);
    }
  }

  /** Whether the act is possible, which then happens. */
  take(act: RepairAct): boolean {
    try {
      const next = this.#after(act, this.#state);
      this.#state = next ?? this.#state;
      return next !== undefined;
    } catch {
      // A promise is broken then.
      return false;
    }
  }

  #after(act: RepairAct, state: State): State | undefined {
    switch (act.kind) {
      case 'loses':
        return model.lose(BOUNDS, state);
      case 'draws': {
        const next = model.draw(BOUNDS, state, this.#founder(act.floor), act.floor);
        return state.created === act.created ? next : undefined;
      }
      case 'creates':
        return model.finish(
          state,
          state.founders.findIndex(({ does, first }) => does === 'waits' && first > state.floor),
        );
      case 'looks': {
        const n = this.#ids.indexOf(act.id);
        return (n < 0 ? undefined : model.readLease(BOUNDS, state, this.#founder(act.floor), n)) ?? state;
      }
      case 'writes':
        return this.#afterWrite(act, state);
      default:
        return this.#afterNode(act, state);
    }
  }

  #afterNode(
    act: Of<'begins' | 'ends' | 'follows' | 'starts' | 'stops' | 'marks' | 'reads'>,
    state: State,
  ): State | undefined {
    const n = this.#ids.indexOf(act.tenure.id);
    if (act.kind === 'begins') {
      this.#versions.set(n, act.tenure.version);
      return model.begin(state, n);
    }
    const node = state.nodes[n];
    if (!node || !this.#isPresent(act.tenure, state)) return act.kind === 'starts' ? undefined : state;
    const { followed, works, shows } = node;
    const isPremature = this.#isPremature.has(act);
    switch (act.kind) {
      case 'ends':
        return model.end((isPremature && state.map && this.#sent(state, n, state.map)) || state, n);
      case 'reads':
        return model.readSettings(state, n) ?? state;
      case 'marks': {
        if (act.epoch === undefined) return node.part ? model.unmark(BOUNDS, state, n, !isPremature) : state;
        const marked = model.mark(state, n) ?? state;
        const isShown = followed?.frozen && followed.epoch === act.epoch && shows !== act.epoch;
        return isShown ? model.show(BOUNDS, marked, n) : marked;
      }
      case 'follows':
        if (followed && followed.epoch === state.map?.epoch) return state;
        return model.follow(BOUNDS, state, n) ?? (act.isOutdated ? state : undefined);
      case 'starts': {
        if (act.shard !== this.shard) return state;
        return followed?.token === act.token ? model.start(state, n) : undefined;
      }
      case 'stops': {
        if (act.shard !== this.shard) return state;
        return works === act.token ? (model.stop(state, n) ?? model.handOn(BOUNDS, state, n)) : undefined;
      }
    }
  }

  #afterWrite(act: Of<'writes'>, state: State): State | undefined {
    const { epoch, frozen = false } = act;
    const f = state.founders.findIndex(({ first }) => first === epoch || first + 1 === epoch);
    const founder = state.founders[f];
    const isFirst = founder?.first === epoch;
    if (founder && (isFirst || (founder.repairs && founder.does !== 'idle'))) {
      const sent = isFirst
        ? model.sendFirst(BOUNDS, state, f)
        : model.open(BOUNDS, this.#withoutNew(state, f), f);
      const written = sent && model.writeFounded(BOUNDS, sent, f);
      if (written?.map?.epoch !== epoch || written.map.frozen !== frozen) return undefined;
      return isFirst ? this.#withoutNew(written, f) : written;
    }
    const { owner, token } = act.shards[this.shard] as (typeof act.shards)[number];
    const given = owner && this.#isPresent(owner, state) ? this.#ids.indexOf(owner.id) : model.NO_OWNER;
    const { map } = state;
    if (!map || map.frozen) return undefined;
    if (map.owner === given && (given === model.NO_OWNER || map.token === token)) return state;
    if (given !== model.NO_OWNER && token !== epoch) return undefined;
    if (!act.tenure) return undefined;
    const n = this.#ids.indexOf(act.tenure.id);
    const sent = this.#isPresent(act.tenure, state) ? this.#sent(state, n, map) : state;
    return sent && model.write(BOUNDS, sent, n, given, epoch);
  }

  /** What a node hands on has ended; where it never ran, no act says so. */
  #sent(state: State, n: number, map: ShardMap): State | undefined {
    const { base, works } = state.nodes[n] ?? {};
    if (base?.epoch === map.epoch) return state;
    if (map.owner !== n) return model.give(BOUNDS, state, n);
    return works === 0 ? model.handOn(BOUNDS, state, n) : undefined;
  }

  /** A founder does not read the leases of node ids that its cluster got after it had drawn. */
  #withoutNew(state: State, f: number): State {
    const peak = this.#draws[f]?.peak ?? 0;
    const isNew = (n: number) => (this.#ids[n] ?? peak) >= peak;
    const nodes = [...state.nodes.keys()].filter(isNew);
    return nodes.reduce((before, n) => model.readLease(BOUNDS, before, f, n) ?? before, state);
  }

  #founder(floor: number): number {
    return this.#draws.findIndex((draw) => draw.floor === floor);
  }

  #isPresent({ id, version }: Tenure, state: State): boolean {
    const n = this.#ids.indexOf(id);
    return state.nodes[n]?.lives === true && this.#versions.get(n) === version;
  }

  said(act: RepairAct): string {
    const { map, floor, created, nodes, founders } = this.#state;
    const node = 'tenure' in act && act.tenure ? nodes[this.#ids.indexOf(act.tenure.id)] : undefined;
    return JSON.stringify({
      floor,
      created,
      map,
      node,
      founders: founders.filter(({ does }) => does !== 'idle'),
    });
  }
}
