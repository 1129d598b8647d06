import { leaseKey } from '../../../src/core/lease/model/lease-state.js';
import type { ScaleOutcome } from '../../../src/core/lease/operate/scaling.js';
import type { SimulatedProcess } from '../world/simulated-process.js';
import type { World } from '../world/world.js';
import type { ObservedObject } from './observed-object.js';

/** Which node ids there are, according to `cluster.json`. */
export interface ReportedSize {
  readonly size: number;
  readonly generation: number;
}

/** The simulator's own reading of `cluster.json`. */
export function reportedSize(body: string): ReportedSize {
  const { size, generation = 0 } = JSON.parse(body) as { size: number; generation?: number };
  return { size, generation };
}

/** Who sent a write, and when. */
export interface Sender {
  readonly name: string;
  readonly process: SimulatedProcess;
  /** In true time. */
  readonly sentAt: number;
  /** The last settings that it had heard of by then; undefined for one that never asked. */
  readonly heard: ReportedSize | undefined;
}

/** An operator's call. */
interface ScaleCall {
  /** True time before which it may not take an id away from its holder. */
  readonly forcesAt: number;
}

/** What a world's other observers know. */
export interface ScaleWitness {
  readonly world: World;
  /** Whether somebody believes that it holds the id, or has work running under it. */
  readonly isHeld: (id: number) => boolean;
  readonly object: (id: number) => ObservedObject | undefined;
  readonly fail: (text: string, invariant: 'retirement' | 'survivors') => void;
}

/** Watches what becomes of node ids, and of their holders, while the cluster grows and shrinks. */
export class ScaleObserver {
  /** What `cluster.json` has said so far, the last one since `#changedAt`. */
  readonly #sizes: ReportedSize[] = [];
  #changedAt = 0;
  readonly #heard = new Map<SimulatedProcess, ReportedSize>();
  readonly #calls = new Map<SimulatedProcess, ScaleCall>();
  /** When each object was made, or made to name its last holder. */
  readonly #since = new Map<number, number>();
  /** Sizes that operators want and have not heard to be there, by operator. */
  readonly #wanted = new Map<number, number>();
  /**
   * What the cluster must have in the end: the only size that was wanted since somebody's call began;
   * undefined where there were several.
   */
  #due: number | undefined;

  constructor(private readonly witness: ScaleWitness) {}

  /** `cluster.json` has been written. */
  onSettings(reported: ReportedSize): void {
    const before = this.#reported;
    if (before?.size === reported.size && before.generation === reported.generation) return;
    this.#changedAt = this.witness.world.scheduler.now;
    this.#sizes.push(reported);
  }

  get #reported(): ReportedSize | undefined {
    return this.#sizes.at(-1);
  }

  /** A process has got the settings as a reply. */
  onHeard(process: SimulatedProcess, reported: ReportedSize): void {
    this.#heard.set(process, reported);
  }

  heardBy(process: SimulatedProcess): ReportedSize | undefined {
    return this.#heard.get(process);
  }

  /** An operator wants another size, and goes on until the cluster has it, or another operator's. */
  onWanted(operator: number, size: number): void {
    this.#due = this.#wanted.size === 0 ? size : undefined;
    this.#wanted.set(operator, size);
  }

  /** It has what it wants, or has given up: then nothing is due any more. */
  onSettled(operator: number, done: boolean): void {
    this.#wanted.delete(operator);
    if (!done) this.#due = undefined;
  }

  /** The store has gone back, and the size with it perhaps: none is due. */
  onRestored(): void {
    this.#due = undefined;
  }

  /** An operator's call begins, in a process of its own. */
  onCall(process: SimulatedProcess, call: ScaleCall): void {
    this.#calls.set(process, call);
  }

  /** The store has carried out a write to a lease object. */
  afterWrite(id: number, before: ObservedObject, now: ObservedObject, sender: Sender): void {
    const acquired = now.held && now.version > before.version;
    if (acquired) this.#checkAcquisition(id, before, sender);
    if (acquired || (now.version === 0 && now.retiredIn === undefined))
      this.#since.set(id, this.witness.world.scheduler.now);
    if (now.retiredIn !== undefined && (sender.heard === undefined || id < sender.heard.size))
      this.witness.fail(`${sender.name} retires node id ${id}, which the cluster keeps`, 'survivors');
    const call = this.#calls.get(sender.process);
    // A task that has lost it already may not have heard of that.
    if (call !== undefined && before.held && this.witness.isHeld(id)) this.#checkTaking(id, call, sender);
  }

  #checkAcquisition(id: number, { retiredIn }: ObservedObject, { name, heard }: Sender): void {
    const { fail } = this.witness;
    if (heard !== undefined && id >= heard.size)
      fail(`${name} takes node id ${id}, and knew of ${heard.size} ids`, 'retirement');
    const generation = this.#reported?.generation ?? 0;
    // Who takes it by settings that are lost does not believe in it (rule 11).
    if (retiredIn !== undefined && retiredIn >= generation && this.witness.world.restored.length === 0)
      fail(
        `${name} takes node id ${id}, which is retired in generation ${retiredIn} of ${generation}`,
        'retirement',
      );
  }

  /** An operator writes to an object whose holder believes in it. */
  #checkTaking(id: number, { forcesAt }: ScaleCall, { name, sentAt, heard }: Sender): void {
    const { fail, world } = this.witness;
    // An etag that came back brings the age that was observed before: its holder looks expired.
    if (world.restored.length > 0) return;
    if (heard === undefined || id < heard.size)
      fail(`${name} takes node id ${id}, which the cluster keeps, from its holder`, 'survivors');
    else if (sentAt < forcesAt) {
      const earlyMs = Math.round(forcesAt - sentAt);
      fail(
        `${name} takes node id ${id} from its holder ${earlyMs} ms before it has waited long enough`,
        'survivors',
      );
    }
  }

  /** A holder has been notified that its id is to be given up, since the cluster has fewer. */
  onRetiring(name: string, id: number, size: number): void {
    if (id < size || !this.#sizes.some((reported) => reported.size === size))
      this.witness.fail(`${name} is asked to give up node id ${id} of ${size}`, 'survivors');
  }

  /** An operator's call says what it came to. */
  onOutcome(name: string, outcome: ScaleOutcome): void {
    const { world, fail } = this.witness;
    if (outcome.kind !== 'scaled') return;
    const { damaged, from, to } = outcome;
    // What was seen and retired before the store went back may be there or not.
    if (world.restored.length > 0) return;
    if (damaged.length > 0) fail(`${name} finds damage: ${JSON.stringify(damaged)}`, 'retirement');
    // A call that set out to grow does not retire what another has just given up.
    const shrunk = from >= to && to === this.#reported?.size && to < (this.#sizes.at(-2)?.size ?? to);
    // A listing of some time ago shows neither what was made since nor who has come.
    if (!shrunk || world.conditions.rates['stale-list'] > 0) return;
    const end = Math.max(...this.#sizes.map(({ size }) => size));
    for (let id = to; id < end; id += 1) {
      if (!this.#isGivenUp(id))
        fail(`${name} says that there are ${to} node ids, and ${leaseKey(id)} is not retired`, 'retirement');
    }
  }

  /** Whether no task can have an id any more, once the cluster is said to have shrunk. */
  #isGivenUp(id: number): boolean {
    const { world, object } = this.witness;
    // A task that had read the settings before may have come since.
    if (world.read(leaseKey(id)) === undefined || (this.#since.get(id) ?? 0) > this.#changedAt) return true;
    const retiredIn = object(id)?.retiredIn;
    // A task that last heard of settings in which the id was there takes the mark of an earlier generation
    // for that of an end long ago.
    return (
      retiredIn !== undefined &&
      !this.#sizes.some(({ size, generation }) => generation > retiredIn && size > id)
    );
  }

  /**
   * What operators are still waiting for, or failed to get, when it should be over: one sentence; undefined
   * for nothing.
   */
  unfinished(): string | undefined {
    const [size] = this.#wanted.values();
    if (size !== undefined)
      return `an operator is still busy giving the cluster ${size} node ids; it has ${this.#reported?.size}`;
    if (this.#due === undefined || this.#due === this.#reported?.size) return undefined;
    return `the cluster has ${this.#reported?.size} node ids, and should have ${this.#due}`;
  }
}
