/** Is told of a wider width; others hear of it when it has returned, or what it returned has resolved. Must neither throw nor reject. */
export type WidthListener = (idWidth: number) => void | Promise<void>;

/** How many bits a node id takes in the unique ids of one tenure, and who makes them: all have to go over to a wider width before it is told to others. */
export class TenureWidth {
  #value: number;
  #adopted: number;
  readonly #listeners = new Set<WidthListener>();

  /**
   * @param value the width that others have been told already
   * @param onAdopted is called with every wider one as soon as no narrower ids are made any more in this tenure
   */
  constructor(
    value: number,
    private readonly onAdopted: (idWidth: number) => void,
  ) {
    this.#value = value;
    this.#adopted = value;
  }

  /** The width of new ids. */
  get value(): number {
    return this.#value;
  }

  /** The width that no narrower ids are made than any more. */
  get adopted(): number {
    return this.#adopted;
  }

  /** Calls `listener` with every wider width, until the returned function is called. */
  onWidth(listener: WidthListener): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** Has new ids made with so many bits; nothing where there are as many already. */
  widen(idWidth: number): void {
    if (idWidth <= this.#value) return;
    this.#value = idWidth;
    const slow = [...this.#listeners].map((listener) => listener(idWidth)).filter((told) => told !== undefined);
    if (slow.length === 0) this.#adopt(idWidth);
    // One that never answers keeps the others waiting, as it must: it may be making narrow ids.
    else void Promise.all(slow).then(() => this.#adopt(idWidth));
  }

  #adopt(idWidth: number): void {
    if (idWidth <= this.#adopted) return;
    this.#adopted = idWidth;
    this.onAdopted(idWidth);
  }
}
