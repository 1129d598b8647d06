import type { LockLostError } from '../../../../src/core/lease/model/lock-lost.js';
import type { LockHandle } from '../../../../src/zookeeper/recipes/lock-handle.js';
import type { SimulatedProcess } from '../../world/simulated-process.js';
import type { DataTree } from '../ensemble/data-tree.js';
import type { Run } from '../machine-host.js';
import type { RecipeWorld } from '../world.js';

/** What was won, seen from outside. */
export interface Grant {
  readonly run: Run;
  readonly handle: LockHandle;
  readonly sessionId: string | undefined;
  /** Readers share. A writer that lets readers in has become one. */
  shared: boolean;
  /** Whether its task has ended its work. */
  isOver: boolean;
  /** Whether its task has ever believed that it holds. */
  seen: boolean;
}

export interface ObservedLock {
  /** The folder in which the contenders stand, perhaps in folders of it. */
  readonly path: string;
  /** How many may hold at once. */
  readonly capacity: number;
  /** Whether tokens increase from holder to holder. */
  readonly ordered: boolean;
  /** How many standing watches a task may have at once. */
  readonly watches: number;
  /** The folder whose children may be watched. */
  readonly watchable: string | undefined;
}

/** What `guard()` writes: the token. */
export const GUARDED = '/guarded';

const NUMBER = /\d{10}$/;
const READ = '__READ__';

/**
 * Watches one lock from outside, in true time.
 *
 * A task believes while its handle's `isValid()` says so, and when it is lost, until the deadline that it
 * gets, or until it has ended its work. Belief can only begin in a step of the task's own process, so it is
 * enough to look after each step at the task whose step it was.
 */
export class LockObserver {
  readonly #grants = new Set<Grant>();
  readonly #byProcess = new Map<SimulatedProcess, Set<Grant>>();
  /** Znodes that were ever made in the folder, and by which session. */
  readonly #made = new Map<string, string>();
  readonly #madeBy = new Map<string, string[]>();
  readonly #expired = new Set<string>();
  #newestWriter = 0n;
  #newest = 0n;
  #guarded = 0n;

  constructor(
    private readonly world: RecipeWorld,
    private readonly lock: ObservedLock,
  ) {
    world.onDecided.push(({ changes }) => {
      for (const change of changes) {
        if (change.type === 'create' && change.owner !== undefined) this.#onMade(change.path, change.owner);
        if (change.type === 'set' && change.path === GUARDED)
          this.#onGuarded(BigInt(change.data.toString('utf8')));
      }
    });
    world.onExpired.push((sessionId) => this.#onExpired(sessionId));
    world.onWatch.push((sessionId, type, path, tree) => this.#onWatch(sessionId, type, path, tree));
  }

  /** A task's `acquire()` has answered. */
  granted(run: Run, handle: LockHandle, shared: boolean): Grant {
    const { world } = this;
    const grant: Grant = {
      run,
      handle,
      sessionId: this.#made.get(handle.path),
      shared,
      isOver: false,
      seen: false,
    };
    if (world.recording)
      world.note(
        run.name,
        `has it${shared ? ' with others' : ''}, token ${handle.token}, valid: ${handle.isValid()}`,
      );
    world.counts.tenures += 1;
    this.#grants.add(grant);
    const own = this.#byProcess.get(run.process) ?? new Set();
    this.#byProcess.set(run.process, own.add(grant));
    return grant;
  }

  /** The task has released it, or found that it is lost. */
  ended(grant: Grant): void {
    if (believes(grant)) this.world.fail('exclusion', `${reported(grant)} is valid after its end`);
    this.#grants.delete(grant);
    this.#byProcess.get(grant.run.process)?.delete(grant);
  }

  afterStep({ process, zookeeper, name }: Run): void {
    for (const grant of this.#byProcess.get(process) ?? []) if (believes(grant)) this.#believed(grant);
    const { openWatches } = zookeeper;
    if (openWatches > this.lock.watches) this.world.fail('watches', `${name} has ${openWatches} watches`);
  }

  /** At the end, when all tasks have stopped, and all sessions of dead ones are over. */
  atEnd(tree: DataTree): void {
    for (const path of this.#made.keys())
      if (tree.has(path))
        this.world.fail(
          'orphan',
          `${path} of session ${tree.owner(path)} stands although its task has given it up`,
        );
  }

  #believed(grant: Grant): void {
    const { world, lock } = this;
    if (this.#expired.has(grant.sessionId ?? ''))
      world.fail('deadline', `${reported(grant)} believes that it holds, and its session has ended`);
    const others = [...this.#grants].filter((other) => other !== grant && believes(other));
    const conflicting = others.filter((other) => !other.shared || !grant.shared);
    if (conflicting.length >= lock.capacity)
      world.fail(
        'exclusion',
        `${reported(grant)} believes that it holds, while ${conflicting.map(reported).join(', ')} does`,
      );
    if (grant.seen) return;
    grant.seen = true;
    if (!lock.ordered) return;
    const { token } = grant.handle;
    // What a fencing receiver needs: a writer comes after all holders before it, and a reader after all
    // writers. It keeps the newest token of writers, which keeps out older readers and writers, and the
    // newest of all, which keeps out older writers. Readers overlap, and do not keep each other out.
    const after = grant.shared ? this.#newestWriter : this.#newest;
    if (token <= after) world.fail('token', `${reported(grant)} begins after a holder with token ${after}`);
    if (token > this.#newest) this.#newest = token;
    if (!grant.shared && token > this.#newestWriter) this.#newestWriter = token;
  }

  #onExpired(sessionId: string): void {
    const { world } = this;
    const { latenessMs } = world.conditions;
    this.#expired.add(sessionId);
    for (const grant of this.#grants) {
      if (grant.sessionId !== sessionId) continue;
      const { handle, run } = grant;
      if (believes(grant))
        world.fail('deadline', `${reported(grant)} is valid when the servers end its session`);
      const { process } = run;
      const mayBeLate =
        !process.alive || process.stopped || world.scheduler.now - run.disturbedAt <= 2 * latenessMs + 1;
      if (!mayBeLate && !handle.signal.aborted && !run.releasing)
        world.fail(
          'deadline',
          `the signal of ${reported(grant)} has not aborted when the servers end its session`,
        );
    }
  }

  #onMade(path: string, owner: string): void {
    if (!path.startsWith(`${this.lock.path}/`)) return;
    this.#made.set(path, owner);
    this.#madeBy.set(owner, [...(this.#madeBy.get(owner) ?? []), path]);
  }

  #onGuarded(token: bigint): void {
    if (token < this.#guarded)
      this.world.fail('guard', `a guarded write of token ${token} comes after one of token ${this.#guarded}`);
    this.#guarded = token;
  }

  /** A watch stands on the one before, and on none that is further ahead. */
  #onWatch(sessionId: string, type: 'read' | 'children' | 'exists', path: string, tree: DataTree): void {
    const { lock, world } = this;
    if (!path.startsWith(lock.path)) return;
    if (type === 'children' && path !== lock.watchable)
      world.fail('watches', `session ${sessionId} watches the children of ${path}`);
    const number = numberOf(path);
    if (type !== 'read' || number === '' || this.#made.get(path) === sessionId) return;
    const folder = path.slice(0, path.lastIndexOf('/'));
    const own = (this.#madeBy.get(sessionId) ?? []).filter((each) => each.startsWith(`${folder}/`));
    const isNext = (mine: string) => {
      const blocks = (name: string) => !(mine.includes(READ) && name.includes(READ));
      const between = (name: string) => numberOf(name) > number && numberOf(name) < numberOf(mine);
      return (
        numberOf(mine) > number &&
        !(tree.children(folder) ?? []).some((name) => between(name) && blocks(name))
      );
    };
    if (!own.some(isNext))
      world.fail(
        'watches',
        `session ${sessionId} watches ${path}, which is not next before ${own.join(', ')}`,
      );
  }
}

/**
 * Whether its task may act: what is lost may be worked with until its deadline, or until the task itself
 * closes the client.
 */
function believes({ handle, run, isOver }: Grant): boolean {
  if (isOver) return false;
  const { aborted, reason } = handle.signal;
  const isClosed = run.zookeeper.state.status === 'closed';
  return (
    handle.isValid() ||
    (aborted && !isClosed && run.process.clock.monotonic() < (reason as LockLostError).deadline)
  );
}

function numberOf(path: string): string {
  return NUMBER.exec(path)?.[0] ?? '';
}

function reported({ run, handle, shared }: Grant): string {
  return `${run.name} (token ${handle.token}${shared ? ', a reader' : ''})`;
}
