/**
 * What a service's instances say of themselves, to JSON and back. A payload that only one side understands makes an instance unreadable for
 * the other: agree on it with the Java services, if there are any.
 */
export interface PayloadCodec<P> {
  /** What `JSON.stringify` is given. An object's `@class`, where it has one, must be on the class path of every Java reader. */
  encode(payload: P): unknown;

  /**
   * The opposite, given what `JSON.parse` made of somebody's payload, with the text of its digits for an integer beyond ±(2^53 − 1);
   * never undefined or null.
   *
   * @throws whatever says, in its message, why it cannot be understood: the instance counts as unreadable then
   */
  decode(json: unknown): P;
}

/** Payloads as the JSON that they are, `@class` included. Nothing is checked. */
export const jsonPayload: PayloadCodec<unknown> = {
  encode: (payload) => payload,
  decode: (json) => json,
};
