import { type Client, Event, Exception } from 'node-zookeeper-client';

/** Called with the path of a node that has come, changed or gone. */
export type PathListener = (path: string) => void;

/**
 * The baseline: the nodes of a tree followed with one-shot watches alone, by reading again whatever a watch
 * has fired for. It handles no failure of a network.
 */
export class PlainWatcher {
  /** Path → the JSON that stands there. */
  readonly nodes = new Map<string, unknown>();
  onChange: PathListener = () => undefined;
  readonly #groups = new Map<string, Set<string>>();
  #open = 0;
  #becomeReady: () => void = () => undefined;

  /** @param library connected */
  constructor(private readonly library: Client) {}

  /** Resolves once the nodes of all groups below `path` have been read. */
  watch(path: string): Promise<void> {
    return new Promise((resolve) => {
      this.#becomeReady = resolve;
      this.#watchChildren(path, (names) => {
        for (const name of names) {
          const group = `${path}/${name}`;
          if (this.#groups.has(group)) continue;
          this.#groups.set(group, new Set());
          this.#watchChildren(group, (members) => this.#follow(group, members));
        }
      });
    });
  }

  #watchChildren(path: string, reported: (names: readonly string[]) => void): void {
    this.#open += 1;
    this.library.getChildren(
      path,
      () => this.#watchChildren(path, reported),
      (error, names) => {
        if (error) throw error;
        reported(names);
        this.#end();
      },
    );
  }

  #follow(group: string, names: readonly string[]): void {
    const known = this.#groups.get(group) ?? new Set();
    const present = new Set(names);
    for (const name of known) {
      if (present.has(name)) continue;
      this.nodes.delete(`${group}/${name}`);
      this.onChange(`${group}/${name}`);
    }
    this.#groups.set(group, present);
    for (const name of present) if (!known.has(name)) this.#watchData(`${group}/${name}`);
  }

  #watchData(path: string): void {
    this.#open += 1;
    this.library.getData(
      path,
      (event) => {
        // That it has gone is learned from its group.
        if (event.getType() !== Event.NODE_DELETED) this.#watchData(path);
      },
      (error, data) => {
        if (error instanceof Exception && error.getCode() === Exception.NO_NODE) return this.#end();
        if (error) throw error;
        this.nodes.set(path, JSON.parse(data.toString('utf8')));
        this.onChange(path);
        this.#end();
      },
    );
  }

  #end(): void {
    this.#open -= 1;
    if (this.#open === 0) this.#becomeReady();
  }
}
