import { createHash, timingSafeEqual } from 'node:crypto';
import { constants } from 'node:fs';
import { open } from 'node:fs/promises';
import { ConfigError, explain } from '../base/errors.js';
import { HttpProblem } from './problem.js';

/** Tells whether a token is the right one. */
export interface BearerToken {
  /**
   * Takes as long for a wrong token as for the right one.
   *
   * @throws {HttpProblem} `unavailable` when the right one is not known for the time being
   */
  admits(token: string): Promise<boolean>;
}

/** RFC 6750, and long enough not to be found by trying. */
const TOKEN = /^[A-Za-z0-9._~+/-]{16,1024}={0,4}$/;

const EXPECTED = 'a file that holds one token of 16 to 1024 letters, digits and -._~+/ on one line';

/** No token file is larger, in bytes. */
const LARGEST_FILE = 4_096;

/** A token that stands in a file. It is read again for every request, so that it can be replaced at any time. */
export class BearerTokenFile implements BearerToken {
  private constructor(private readonly path: string) {}

  /**
   * @param label the setting that the path comes from, as its user knows it
   * @throws {ConfigError} when the file cannot be read, or holds no token
   */
  static async open(path: string, label: string): Promise<BearerTokenFile> {
    let text: string;
    try {
      text = await read(path);
    } catch (cause) {
      throw new ConfigError(label, path, `${EXPECTED} (it cannot be read: ${explain(cause)})`);
    }
    const problem = problemWith(text);
    if (problem !== undefined) throw new ConfigError(label, path, `${EXPECTED} (${problem})`);
    return new BearerTokenFile(path);
  }

  async admits(token: string): Promise<boolean> {
    const text = await read(this.path).catch(() => undefined);
    // The file may just be being replaced: neither the old token nor an empty one may get through meanwhile.
    if (text === undefined || problemWith(text) !== undefined) {
      throw new HttpProblem('unavailable', 'the file with the token cannot be read, or holds none: nobody is let in', {
        'retry-after': '5',
      });
    }
    return timingSafeEqual(digest(token), digest(text.trim()));
  }
}

function digest(text: string): Buffer {
  return createHash('sha256').update(text).digest();
}

function problemWith(text: string): string | undefined {
  const token = text.trim();
  if (token === '') return 'it is empty';
  if (/\s/.test(token)) return 'it holds more than one word';
  return TOKEN.test(token) ? undefined : 'its token is too short, too long, or has other characters';
}

async function read(path: string): Promise<string> {
  // Waiting for the other end of a pipe would take one of the process' four threads for files with each request.
  const file = await open(path, constants.O_RDONLY | constants.O_NONBLOCK);
  try {
    const { buffer, bytesRead } = await file.read(Buffer.alloc(LARGEST_FILE), 0, LARGEST_FILE, 0);
    return buffer.toString('utf8', 0, bytesRead);
  } finally {
    await file.close();
  }
}
