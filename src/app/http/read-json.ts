import { ConfigError } from '../../core/base/errors.js';
import { shortened } from '../../zookeeper/services/shortened.js';
import { HttpProblem } from './problem.js';

/** The largest body, in bytes: ZooKeeper's own bound for a znode. */
const LARGEST_BODY = 1_048_576;

/**
 * The JSON that a request carries. Of a body that is too large no more is kept than what is allowed.
 *
 * @throws {HttpProblem} `unsupported-media-type`, `too-large`
 * @throws {ConfigError} when it is no JSON
 */
export async function readJson(request: Request): Promise<unknown> {
  const type = request.headers.get('content-type');
  if (!/^application\/json\s*(;|$)/i.test(type ?? ''))
    throw new HttpProblem(
      'unsupported-media-type',
      `content-type: expected application/json, got ${type === null ? 'none' : JSON.stringify(type)}`,
    );
  const text = decode(await readBytes(request));
  try {
    return JSON.parse(text);
  } catch {
    throw new ConfigError('the body', shortened(text), 'JSON');
  }
}

async function readBytes({ headers, body }: Request) {
  const tooLarge = new HttpProblem('too-large', `the body: expected at most ${LARGEST_BODY} bytes`);
  if (Number(headers.get('content-length') ?? 0) > LARGEST_BODY) throw tooLarge;
  const chunks: Uint8Array[] = [];
  let length = 0;
  for await (const chunk of body ?? []) {
    length += chunk.length;
    if (length > LARGEST_BODY) throw tooLarge;
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

function decode(bytes: Buffer) {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    throw new ConfigError('the body', `${bytes.length} bytes of something else`, 'UTF-8');
  }
}
