import type { RecordedRequest } from '../../test/support/s3-stand-in.js';
import { resourcesOf, type Statement } from './stacks.js';

/** What IAM looks at: an action on a resource, and the keys of conditions that the request has. */
export interface Ask {
  readonly action: string;
  readonly resource: string;
  readonly context: Readonly<Record<string, string>>;
}

/** Every request comes over an up-to-date TLS here. */
const TRANSPORT = { 'aws:SecureTransport': 'true', 's3:TlsVersion': '1.3' };

/**
 * What a request to S3 asks of IAM, and for a read also what decides whether S3 would say 404 or 403 of an
 * object that does not exist: a listing of that very name.
 *
 * Source: Service Authorization Reference, "Actions, resources, and condition keys for Amazon S3".
 *
 * @param bucket the name of the bucket in the resources of the statements
 * @throws Error for a request of another kind than nodelease makes
 */
export function asksOf({ method, key, query, headers }: RecordedRequest, bucket: string): readonly Ask[] {
  const resource = `${bucket}/${key}`;
  const list = (prefix: string) => ({
    action: 's3:ListBucket',
    resource: bucket,
    context: { ...TRANSPORT, 's3:prefix': prefix },
  });
  if (method === 'GET' && key === '' && query.get('list-type') === '2')
    return [list(query.get('prefix') ?? '')];
  if (method === 'GET' && key !== '')
    return [{ action: 's3:GetObject', resource, context: TRANSPORT }, list(key)];
  if (method === 'DELETE' && key !== '') return [{ action: 's3:DeleteObject', resource, context: TRANSPORT }];
  if (method !== 'PUT' || key === '')
    throw new Error(`nodelease is not expected to ${method} ${key}?${query}`);
  const context: Record<string, string> = { ...TRANSPORT, 's3:ObjectCreationOperation': 'true' };
  for (const condition of ['if-match', 'if-none-match']) {
    const value = headers[condition];
    if (typeof value === 'string') context[`s3:${condition}`] = value;
  }
  return [{ action: 's3:PutObject', resource, context }];
}

/**
 * As IAM decides: a statement has to allow it, and no statement may deny it. The principal of a statement is
 * left out of it.
 */
export function isAllowed(ask: Ask, statements: readonly Statement[]): boolean {
  const matching = statements.filter((statement) => applies(statement, ask));
  return (
    matching.some(({ Effect }) => Effect === 'Allow') && !matching.some(({ Effect }) => Effect === 'Deny')
  );
}

function applies(statement: Statement, { action, resource, context }: Ask): boolean {
  if (![statement.Action].flat().some((pattern) => like(action, pattern))) return false;
  if (!resourcesOf(statement).some((pattern) => like(resource, pattern))) return false;
  const conditions = Object.entries(
    (statement.Condition ?? {}) as Readonly<Record<string, Readonly<Record<string, string | number>>>>,
  );
  return conditions.every(([operator, keys]) =>
    Object.entries(keys).every(([key, wanted]) => holds(operator, context[key], wanted)),
  );
}

function holds(operator: string, value: string | undefined, wanted: string | number): boolean {
  switch (operator) {
    case 'StringLike':
      return value !== undefined && like(value, String(wanted));
    case 'StringEquals':
    case 'Bool':
      return value === wanted;
    case 'NumericLessThan':
      return value !== undefined && Number(value) < Number(wanted);
    case 'Null':
      return String(value === undefined) === wanted;
    default:
      throw new Error(`no idea of the condition ${operator}`);
  }
}

/** Whether a text matches a pattern of IAM. */
export function like(text: string, pattern: string): boolean {
  const expression = pattern.split('*').map((part) => part.replace(/[.+?^${}()|[\]\\]/g, '\\$&'));
  return new RegExp(`^${expression.join('.*')}$`, 's').test(text);
}
