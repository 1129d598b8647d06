import type { Znode } from '../../../../src/zookeeper/client/zookeeper.js';
import type { SharedMap, SharedSet } from '../../../../src/zookeeper/shared-data/collections.js';
import type { Kind, Lifespan } from '../../../../src/zookeeper/shared-data/data-report.js';
import { decodeEntry } from '../../../../src/zookeeper/shared-data/entry.js';
import type { PathStrategy } from '../../../../src/zookeeper/shared-data/layout.js';
import { type SharedData, sharedData } from '../../../../src/zookeeper/shared-data/shared-data.js';
import { SharedDataError } from '../../../../src/zookeeper/shared-data/shared-data-error.js';
import type { SharedList } from '../../../../src/zookeeper/shared-data/shared-list.js';
import { bounded } from '../checks/bounded.js';
import type { Run } from '../machine-host.js';
import type { RecipeWorld } from '../world.js';
import { isExpected } from './expected.js';
import type { Scenario } from './scenario.js';

const ROOT = '/cluster';
/** Few places for many keys, so that they collide; `e-` for ephemeral data. */
const KEYS = 6;
const COLLIDING: PathStrategy = { datum: ({ name }) => name, element: (text) => `bad${text.length % 2}` };
const CALL_MS = 5_000;

/** One write, and what may have become of it. */
interface Write {
  readonly began: number;
  /** Infinite while it may still be carried out: its task was killed, or does not know. */
  ended: number;
  /** The value; undefined for a removal. */
  readonly value: string | undefined;
  certain: boolean;
}

interface Handles {
  readonly data: SharedData;
  readonly map: SharedMap<string, string>;
  readonly set: SharedSet<string>;
  readonly list: SharedList<string>;
  readonly claims: SharedMap<string, string>;
  readonly members: SharedSet<string>;
  readonly order: SharedList<string>;
  /** The ephemeral data that this task wants. */
  readonly wanted: {
    readonly claims: Map<string, string>;
    readonly members: Set<string>;
    readonly order: string[];
  };
  /** Whether all that it wants is certain. */
  sure: boolean;
  finished: boolean;
}

/**
 * Tasks that write the same shared data, persistent and ephemeral, with a hash that makes everything collide.
 */
export class SharedDataScenario implements Scenario {
  readonly containers = [];
  readonly #writes = new Map<string, Write[]>();
  readonly #appended = new Map<string, { certain: boolean; removing: boolean; removed: boolean }>();
  readonly #handles = new Map<Run, Handles>();
  readonly #replaced = new Set<string>();
  #values = 0;

  constructor(private readonly world: RecipeWorld) {
    world.onDecided.push(() => this.#checkChains('persistent'));
  }

  async live(run: Run): Promise<void> {
    const { world } = this;
    const { zookeeper, process, dice } = run;
    const data = sharedData(zookeeper, {
      root: ROOT,
      paths: COLLIDING,
      clock: process.clock,
      random: dice.fork(1),
    });
    if (dice.fork(3).chance(0.5)) data.supervise();
    const handles = await this.#open(run, data);
    if (handles === undefined) return;
    this.#handles.set(run, handles);
    while (zookeeper.state.status !== 'closed' && !world.stopping) {
      await process.clock.sleep(dice.between(0, world.conditions.grantedMs / 4));
      if (!handles.finished) await this.#act(run, handles);
      if (world.quiet) handles.finished = true;
    }
    await data.close();
  }

  async #open(run: Run, data: SharedData): Promise<Handles | undefined> {
    const ephemeral = { lifespan: 'ephemeral' } as const;
    while (run.zookeeper.state.status !== 'closed' && !this.world.stopping) {
      try {
        const [map, set, list, claims, members, order] = await bounded(
          this.world,
          run,
          'open',
          CALL_MS,
          Promise.all([
            data.map<string, string>('map'),
            data.set<string>('set'),
            data.list<string>('list'),
            data.map<string, string>('e-map', ephemeral),
            data.set<string>('e-set', ephemeral),
            data.list<string>('e-list', ephemeral),
          ]),
        );
        const wanted = { claims: new Map<string, string>(), members: new Set<string>(), order: [] };
        return { data, map, set, list, claims, members, order, wanted, sure: true, finished: false };
      } catch (error) {
        this.#judge(run, 'open', error);
      }
    }
    return undefined;
  }

  async #act(run: Run, handles: Handles): Promise<void> {
    const { dice } = run;
    const timeoutMs = dice.chance(0.5) ? undefined : dice.magnitude(50, CALL_MS);
    const call = { timeoutMs };
    const key = `${'k'.repeat(1 + dice.below(2))}${dice.below(KEYS)}`;
    const value = `v${this.#values++}`;
    const { map, set, list } = handles;
    const version = map.entry(key)?.version ?? 'absent';
    const acts: (() => Promise<void>)[] = [
      () => this.#write(run, call, `map ${key}`, value, () => map.set(key, value, call)),
      () =>
        this.#write(run, call, `map ${key}`, value, () =>
          this.#compareAndSet(handles, key, value, version, call),
        ),
      () => this.#write(run, call, `map ${key}`, undefined, () => map.remove(key, call)),
      () => this.#write(run, call, `set ${key}`, key, () => set.add(key, call).then(() => true)),
      () => this.#write(run, call, `set ${key}`, undefined, () => set.remove(key, call)),
      () => this.#append(run, call, value, list),
      () => this.#cut(run, call, list),
      () => this.#contribute(run, call, key, value, handles),
    ];
    await dice.pick([...acts, () => this.#contribute(run, call, key, value, handles)])();
  }

  async #write(
    run: Run,
    { timeoutMs }: { timeoutMs: number | undefined },
    key: string,
    value: string | undefined,
    call: () => Promise<boolean>,
  ) {
    const { world } = this;
    const write: Write = {
      began: world.scheduler.now,
      ended: Number.POSITIVE_INFINITY,
      value,
      certain: false,
    };
    const all = this.#writes.get(key) ?? [];
    this.#writes.set(key, all);
    all.push(write);
    const what = value === undefined ? `remove ${key}` : `put ${key} ${value}`;
    try {
      const isDone = await bounded(world, run, what, timeoutMs ?? CALL_MS, call());
      write.ended = world.scheduler.now;
      write.certain = isDone;
      if (!isDone) all.splice(all.indexOf(write), 1);
      if (world.recording) world.note(run.name, `${what}: ${isDone}`);
      world.counts.tenures += 1;
    } catch (error) {
      this.#judge(run, what, error);
    }
  }

  /** At most one write is made for a version. */
  async #compareAndSet(
    { map }: Handles,
    key: string,
    value: string,
    version: string,
    call: { timeoutMs: number | undefined },
  ) {
    const isDone = await map.set(key, value, { ...call, ifVersion: version });
    const place = `${key} at version ${version}`;
    if (isDone && version !== 'absent' && this.#replaced.has(place))
      this.world.fail('shared-data', `two writes were made of ${place}`);
    if (isDone) this.#replaced.add(place);
    return isDone;
  }

  async #append(
    run: Run,
    call: { timeoutMs: number | undefined },
    value: string,
    list: SharedList<string>,
  ): Promise<void> {
    const item = { certain: false, removing: false, removed: false };
    this.#appended.set(value, item);
    try {
      await bounded(this.world, run, 'append', call.timeoutMs ?? CALL_MS, list.append(value, call));
      if (this.world.recording) this.world.note(run.name, `has appended ${value}`);
      item.certain = true;
    } catch (error) {
      this.#judge(run, `append ${value}`, error);
    }
  }

  async #cut(run: Run, call: { timeoutMs: number | undefined }, list: SharedList<string>): Promise<void> {
    const index = run.dice.below(Math.max(1, list.length));
    const entry = list.entries()[index];
    const item = entry && this.#appended.get(entry.value);
    if (entry === undefined || item === undefined || entry.name !== String(index)) return;
    item.removing = true;
    try {
      const cut = list.remove(index, { ...call, ifVersion: entry.version });
      if (await bounded(this.world, run, 'list.remove', call.timeoutMs ?? CALL_MS, cut)) item.removed = true;
      if (this.world.recording)
        this.world.note(run.name, `has removed ${entry.value} from the list: ${item.removed}`);
    } catch (error) {
      this.#judge(run, `list.remove ${entry.value}`, error);
    }
  }

  async #contribute(
    run: Run,
    call: { timeoutMs: number | undefined },
    key: string,
    value: string,
    handles: Handles,
  ): Promise<void> {
    const { wanted, claims, members, order } = handles;
    const limitMs = call.timeoutMs ?? CALL_MS;
    const own = `${key} of ${run.host}`;
    const acts: (() => Promise<unknown>)[] = [
      () => {
        wanted.claims.set(own, value);
        return claims.set(own, value, call);
      },
      () => {
        wanted.claims.delete(own);
        return claims.remove(own, call);
      },
      () => {
        wanted.members.add(key);
        return members.add(key, call);
      },
      () => {
        wanted.order.push(value);
        return order.append(value, call);
      },
    ];
    try {
      await bounded(this.world, run, 'contribute', limitMs, run.dice.pick(acts)());
    } catch (error) {
      // The session of the task before this one has not ended yet.
      if (error instanceof SharedDataError && error.fault === 'owned-by-other') wanted.claims.delete(own);
      else this.#judge(run, `contribute ${own} ${value}`, error);
    }
  }

  #judge(run: Run, what: string, error: unknown): void {
    if (this.world.recording) this.world.note(run.name, `${what} fails: ${String(error)}`);
    const isKnown =
      error instanceof SharedDataError && ['outcome-unknown', 'no-entry', 'not-joined'].includes(error.fault);
    if (!isKnown && !isExpected(error))
      this.world.fail('errors', `${run.name}: ${what} fails: ${String(error)}`);
  }

  waiting(runs: readonly Run[]): string | undefined {
    for (const run of runs) {
      const handles = this.#handles.get(run);
      if (handles?.finished !== true) return `${run.name} could write nothing since the faults have ended`;
    }
    const wantedClaims = runs.flatMap((run) =>
      [...(this.#handles.get(run)?.wanted.claims ?? [])].map((pair) => pair.join(' = ')),
    );
    const wantedMembers = new Set(runs.flatMap((run) => [...(this.#handles.get(run)?.wanted.members ?? [])]));
    const wantedOrder = runs.flatMap((run) => this.#handles.get(run)?.wanted.order ?? []);
    const now = (name: string, kind: Kind) => this.#elements(name, kind);
    const differ = (what: string, is: readonly string[], expected: readonly string[]) => {
      const [a, b] = [[...is].sort().join(', '), [...expected].sort().join(', ')];
      return a === b ? undefined : `${what}: ${a} instead of ${b}`;
    };
    const problems = [
      differ('the claims', now('e-map', 'map'), wantedClaims),
      differ('the members', now('e-set', 'set'), [...wantedMembers]),
      differ('the order', now('e-list', 'list'), wantedOrder),
      this.#gap('ephemeral'),
    ];
    for (const run of runs) {
      const { map, set, list, claims, members, order } = this.#handles.get(run) as Handles;
      const pairs = (each: SharedMap<string, string>) =>
        [...each.entries()].map((entry) => `${entry.key} = ${entry.value}`);
      problems.push(
        differ(`the map of ${run.name}`, pairs(map), now('map', 'map')),
        differ(`the set of ${run.name}`, set.values(), now('set', 'set')),
        differ(`the claims of ${run.name}`, pairs(claims), now('e-map', 'map')),
        differ(`the members of ${run.name}`, members.values(), now('e-set', 'set')),
        list.values().join() === now('list', 'list').join()
          ? undefined
          : `the list of ${run.name} is ${list.values()}`,
        order.values().join() === now('e-list', 'list').join()
          ? undefined
          : `the order of ${run.name} is ${order.values()}`,
        map.stale || list.stale || order.stale ? `${run.name} calls its data stale` : undefined,
      );
    }
    return problems.find((problem) => problem !== undefined);
  }

  /** What the leader has, a list in its order. */
  #elements(name: string, kind: Kind): string[] {
    const { tree } = this.world.ensemble.leader;
    const folder = `${ROOT}/data/${name}`;
    const names = [...(tree.children(folder) ?? [])].sort((a, b) =>
      kind === 'list' ? Number(a) - Number(b) : a < b ? -1 : 1,
    );
    return names.map((child) => {
      const path = `${folder}/${child}`;
      const entry = decodeEntry(kind, child, { data: tree.data(path), stat: tree.stat(path) } as Znode);
      return kind === 'map' ? `${entry?.key} = ${entry?.value}` : String(entry?.value);
    });
  }

  #checkChains(lifespan: Lifespan): void {
    const problem = this.#gap(lifespan);
    if (problem !== undefined) this.world.fail('shared-data', problem);
  }

  /** A chain or list with a gap, or an element that stands there twice. */
  #gap(lifespan: Lifespan): string | undefined {
    const { tree } = this.world.ensemble.leader;
    const prefix = lifespan === 'ephemeral' ? 'e-' : '';
    for (const kind of ['map', 'set', 'list'] as const) {
      const folder = `${ROOT}/data/${prefix}${kind}`;
      const names = new Set(tree.children(folder) ?? []);
      for (const name of names) {
        const [hash = '', n] = kind === 'list' ? ['', name] : name.split('-');
        const before =
          n === undefined || n === '0'
            ? undefined
            : kind === 'list'
              ? `${Number(n) - 1}`
              : n === '1'
                ? hash
                : `${hash}-${Number(n) - 1}`;
        if (before !== undefined && !names.has(before)) return `${folder}/${name} has a gap before it`;
      }
      const elements = this.#elements(`${prefix}${kind}`, kind).map((element) =>
        kind === 'map' ? element.split(' = ')[0] : element,
      );
      if (new Set(elements).size < elements.length)
        return `${folder} has an element twice: ${elements.join(', ')}`;
    }
    return undefined;
  }

  atEnd(): void {
    const { world } = this;
    for (const [key, writes] of this.#writes) {
      const [kind, name] = key.split(' ') as ['map' | 'set', string];
      const now = this.#elements(kind, kind).find(
        (element) => element === name || element.startsWith(`${name} = `),
      );
      const value = kind === 'map' ? now?.slice(name.length + 3) : now;
      const initial: Write = { began: -1, ended: -1, value: undefined, certain: true };
      const isLast = (write: Write) => !writes.some(({ certain, began }) => certain && began > write.ended);
      if (![initial, ...writes].some((write) => write.value === value && isLast(write)))
        world.fail('shared-data', `${key} is ${value}, which no last write has written`);
    }
    const list = this.#elements('list', 'list');
    for (const value of list)
      if (this.#appended.get(value)?.removed !== false)
        world.fail('shared-data', `${value} stands in the list, and should not`);
    for (const [value, { certain, removing }] of this.#appended)
      if (certain && !removing && !list.includes(value))
        world.fail('shared-data', `${value} is lost from the list`);
    for (const name of ['e-map', 'e-set', 'e-list']) {
      const left = world.ensemble.leader.tree.children(`${ROOT}/data/${name}`) ?? [];
      if (left.length > 0) world.fail('orphan', `${name} still has ${left.join(', ')}`);
    }
  }
}
