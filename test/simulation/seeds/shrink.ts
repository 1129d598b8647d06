/** What is to be made small, and how. */
export interface Shrinking {
  /** Everything that may be left out, in the order in which it happened. */
  readonly names: readonly string[];
  /**
   * Lets nothing but these happen. Resolves to the ones that did happen, when it still fails in the same way,
   * and to undefined when not. The same names must always give the same answer, and the ones that did not
   * happen must make no difference to it.
   */
  readonly attempt: (names: readonly string[]) => Promise<readonly string[] | undefined>;
  /** After this many attempts, the smallest set so far has to do. */
  readonly maxRuns: number;
  /**
   * Names to be made few one group after the other, before all of them together.
   * @default one group of all
   */
  readonly groups?: readonly ((name: string) => boolean)[];
  /** Asked before every attempt: true ends the search as if there were no attempts left. */
  readonly stopped?: () => boolean;
}

/** A small set of names that still fails. */
export interface Shrunk {
  readonly names: readonly string[];
  /** How many attempts it took. */
  readonly runs: number;
  /** True when none of the names can be left out alone; false when the search was ended before it knew. */
  readonly minimal: boolean;
}

/**
 * Looks for a small part of what happened that still fails.
 *
 * Delta debugging: the ddmin algorithm of Zeller and Hildebrandt, "Simplifying and Isolating Failure-Inducing
 * Input", IEEE Transactions on Software Engineering 28(2), 2002; group by group, and then without one name
 * after the other until nothing more can go.
 */
export async function shrink(shrinking: Shrinking): Promise<Shrunk> {
  const search = new Search(shrinking);
  for (const belongs of shrinking.groups ?? [() => true]) await search.byParts(belongs);
  const minimal = await search.oneByOne();
  return { names: search.names, runs: search.runs, minimal };
}

class Search {
  names: readonly string[];
  runs = 0;
  /** Sets of names that do not fail, so that nothing is tried twice. */
  readonly #passing = new Set<string>();

  constructor(private readonly shrinking: Shrinking) {
    this.names = shrinking.names;
  }

  /** ddmin over the names of one group, the others staying. */
  async byParts(belongs: (name: string) => boolean): Promise<void> {
    // One part first, that is: does it fail without any of them?
    for (let count = 1; !this.#ended; ) {
      const group = this.names.filter(belongs);
      const parts = inParts(group, count);
      // With two parts or fewer, to keep one is to leave out the other.
      if (
        count > 2 &&
        (await this.#anyWithout(parts.map((part) => group.filter((name) => !part.includes(name)))))
      )
        count = 2;
      else if (await this.#anyWithout(parts)) count = Math.max(count - 1, 2);
      else if (count >= group.length) return;
      else count = Math.min(2 * count, group.length);
    }
  }

  /** True when it got to a point from which no name alone can go. */
  async oneByOne(): Promise<boolean> {
    for (let removed = true; removed; ) {
      removed = false;
      for (const name of this.names) {
        // A name that went along with another one before it is out of the question.
        if (this.names.includes(name) && (await this.#without([name]))) removed = true;
      }
    }
    return !this.#ended;
  }

  get #ended(): boolean {
    return this.runs >= this.shrinking.maxRuns || this.shrinking.stopped?.() === true;
  }

  async #anyWithout(choices: readonly (readonly string[])[]): Promise<boolean> {
    for (const choice of choices) if (await this.#without(choice)) return true;
    return false;
  }

  async #without(left: readonly string[]): Promise<boolean> {
    const kept = this.names.filter((name) => !left.includes(name));
    if (kept.length === this.names.length) return false;
    const key = kept.join('\n');
    if (this.#passing.has(key) || this.#ended) return false;
    this.runs += 1;
    const happened = await this.shrinking.attempt(kept);
    if (happened === undefined) {
      this.#passing.add(key);
      return false;
    }
    const needed = new Set(happened);
    this.names = kept.filter((name) => needed.has(name));
    return true;
  }
}

/** A number of parts of nearly equal size, none of them empty. */
function inParts(names: readonly string[], count: number): (readonly string[])[] {
  const parts = Array.from({ length: count }, (_, index) =>
    names.slice(Math.floor((index * names.length) / count), Math.floor(((index + 1) * names.length) / count)),
  );
  return parts.filter((part) => part.length > 0);
}
