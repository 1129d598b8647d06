/** Throws, with what was expected. */
export type Fail = (expected: string) => never;

/** The first segment of a path, and the rest without the slash between them. */
export function splitPath(path: string): readonly [first: string, rest: string] {
  const [first = '', ...rest] = path.split('/');
  return [first, rest.join('/')];
}

/** A prefix without a slash at its end; it may be empty. */
export function parsePrefix(rest: string, form: string, fail: Fail): string {
  const prefix = rest.replace(/\/$/, '');
  if (prefix === '') return prefix;
  // A query or fragment would silently become a part of every key, which is never what its writer meant.
  if (/[?#\s\p{Cc}]/u.test(prefix)) fail(`a prefix without blanks, control characters, ? and # in ${form}`);
  if (prefix.split('/').some((segment) => segment === '' || segment === '.' || segment === '..')) {
    fail(`a prefix without empty, . and .. segments in ${form}`);
  }
  // Keys have 1,024 bytes; what is left is for the names of the objects.
  if (Buffer.byteLength(prefix) > 900) fail(`a prefix of at most 900 bytes in ${form}`);
  return prefix;
}

/** The prefix as the end of a URL. */
export function below(prefix: string): string {
  return prefix === '' ? '' : `/${prefix}`;
}

/** Whether the name of a bucket is an IPv4 address, which buckets must not have. */
export function isAddress(name: string): boolean {
  return /^\d+\.\d+\.\d+\.\d+$/.test(name);
}
