import type { StoredObject } from '../lease-store.js';
import { type ConditionTerms, checked, type ProbeCheck } from './probe-report.js';
import type { ProbedWrite, ProbeSession, WrittenObject } from './probe-session.js';

/** How many races there are, and among how many writers each. */
export interface Races {
  readonly writers: number;
  /** Each has one race of creates and one of replaces. */
  readonly rounds: number;
}

/** How many races are under way at once: a store that is far away is to be probed in less time. */
const LANES = 2;

/**
 * Several writers create one key at once, and then replace its object at once, all with its etag; in each round another key. The reads that
 * judge a race keep a connection open for each writer of the next one: requests that wait for a connection are no race.
 */
export async function checkRaces(
  session: ProbeSession,
  first: WrittenObject,
  { writers, rounds }: Races,
  terms: ConditionTerms,
): Promise<ProbeCheck> {
  const creates = new RaceRecord(terms.absent);
  const replaces = new RaceRecord(terms.match);
  const readByAll = async (key: string) => (await atOnce(writers, () => session.read(key)))[0];
  await atOnce(LANES * writers, () => session.read(first.key));
  await atOnce(LANES, async (lane) => {
    for (let round = lane; round < rounds; round += LANES) {
      const key = session.newKey();
      const created = await atOnce(writers, (writer) => session.create(key, bodyOf('create', writer)));
      const object = await readByAll(key);
      creates.note(created, object, 'create');
      if (object === undefined) continue;
      const replaced = await atOnce(writers, (writer) => session.replace(key, bodyOf('replace', writer), object.etag));
      replaces.note(replaced, await readByAll(key), 'replace');
    }
  });
  const faults = [creates, replaces].flatMap((record) => record.fault() ?? []);
  if (faults.length > 0) return checked('races', 'fault', faults.join('; '));
  const weakness = creates.weakness ?? replaces.weakness;
  return weakness === undefined ? checked('races', 'ok', `${2 * rounds} races, none lost`) : checked('races', 'warning', weakness);
}

type Kind = 'create' | 'replace';

/** What the races of one condition came to. */
class RaceRecord {
  #races = 0;
  #lost = 0;
  #won = 0;
  #firstLoss = '';
  #refusal: string | undefined;
  weakness: string | undefined;

  /** @param header the condition */
  constructor(private readonly header: string) {}

  /** @param object as it was when all writers had their answers */
  note(writes: readonly ProbedWrite[], object: StoredObject | undefined, kind: Kind): void {
    this.#races += 1;
    const loss = lossOf(writes, object, kind);
    if (loss !== undefined) {
      this.#lost += 1;
      this.#firstLoss ||= loss;
    }
    if (writes.some((_, writer) => object?.body === bodyOf(kind, writer))) this.#won += 1;
    for (const write of writes) {
      if (write.status === 'rejected') this.#refusal ??= `answers a losing writer with an error: ${write.error.message}`;
    }
    const unsure = writes.flatMap((write) => (write.status === 'unsure' ? [write.error.message] : []));
    if (unsure.length > 0) {
      this.weakness ??= `${unsure.length} of ${writes.length} racing writers got a server error instead of a refusal: ${unsure[0]}`;
    }
  }

  fault(): string | undefined {
    if (this.#lost > 0)
      return `${this.header} is not atomic: ${this.#lost} of ${this.#races} races were lost, the first one since ${this.#firstLoss}`;
    if (this.#refusal !== undefined) return this.#refusal;
    if (this.#won > 0 || this.#races === 0) return undefined;
    return `no writer won in any of ${this.#races} races of ${this.header}${this.weakness === undefined ? '' : ` (${this.weakness})`}`;
  }
}

/**
 * Why a race was lost: what no store that keeps its conditions can show. That a write was refused and yet applied is not among it: something on the
 * way may have sent it twice.
 */
function lossOf(writes: readonly ProbedWrite[], object: StoredObject | undefined, kind: Kind): string | undefined {
  const winners = writes.flatMap((write, writer) => (write.status === 'written' ? [writer] : []));
  const [winner] = winners;
  if (winners.length > 1) return `${winners.length} of ${writes.length} concurrent writes were accepted`;
  if (winner !== undefined && object?.body !== bodyOf(kind, winner))
    return 'the write that was accepted was overwritten by one that was not';
  return undefined;
}

/** All of them, to the end, even when one fails: no write may be under way when the result is read. */
async function atOnce<T>(writers: number, call: (writer: number) => Promise<T>): Promise<T[]> {
  const results = await Promise.allSettled(Array.from({ length: writers }, (_, writer) => call(writer)));
  return results.map((result) => {
    if (result.status === 'rejected') throw result.reason;
    return result.value;
  });
}

function bodyOf(kind: Kind, writer: number): string {
  return JSON.stringify({ probe: kind, writer });
}
