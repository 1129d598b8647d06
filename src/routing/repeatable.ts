import { Readable } from 'node:stream';

/** The methods that may be sent twice with the same effect as once (RFC 9110, 9.2.2). */
const IDEMPOTENT_METHODS: ReadonlySet<string> = new Set(['GET', 'HEAD', 'OPTIONS', 'PUT', 'DELETE', 'TRACE']);

const REPLAYABLE_TAGS: ReadonlySet<string> = new Set(['[object Blob]', '[object File]', '[object FormData]']);

/** Whether a method may be sent again though it may have been carried out already. */
export function isIdempotent(method: string): boolean {
  return IDEMPOTENT_METHODS.has(method);
}

/** Whether a body can be sent a second time after the first sending began: not what is read once, such as a stream or a generator. */
export function isReplayable(body: unknown): boolean {
  if (body === null || body === undefined || typeof body === 'string') return true;
  if (ArrayBuffer.isView(body) || body instanceof ArrayBuffer) return true;
  // undici has classes of its own for these, beside Node's.
  return REPLAYABLE_TAGS.has(Object.prototype.toString.call(body));
}

/** Whether a body can be handed over again after a connection could not be made: all can that nobody has begun to read. */
export function isUntouched(body: unknown): boolean {
  return !(body instanceof Readable) || (!body.destroyed && !Readable.isDisturbed(body));
}
