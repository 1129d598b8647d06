/** A value that changes, and can be asked for at any time. */
export interface Observable<T> {
  /** The value as of now. */
  readonly value: T;

  /** Calls `listener` with every new value, until the returned function is called. Not with the present one. Listeners must not throw. */
  onChange(listener: (value: T) => void): () => void;
}
