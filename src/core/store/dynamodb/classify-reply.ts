import { messageOf } from '../../base/fields.js';
import { beforeSending, lostConnection } from '../aws/failures.js';
import { codeOf, type ObservedReply, teachesTime } from '../aws/observed-reply.js';
import { failing, isTimeout, networkErrors, type Operation, type StoreRequest } from '../store-request.js';

/** What is asked of DynamoDB. Each is a permission, too. */
export type Action = 'GetItem' | 'PutItem' | 'Query' | 'DeleteItem' | 'DescribeTable' | 'DescribeTimeToLive';

/** A call that such a request is made for. */
export type DynamoDbRequest = StoreRequest<Exclude<Operation, 'watch' | 'authenticate'>>;

/**
 * Says what a failed request to DynamoDB means, by the name of its exception, the HTTP status and the operating
 * system's error code; never by the text. This is the only place that knows these. Nothing was written only
 * where an exception of DynamoDB says so: a reply with a status below 500 may have been cut, or may come from a
 * proxy.
 *
 * @returns for `PutItem` only
 * @throws {StoreError} for everything else
 */
export function classifyReply(
  action: Action,
  error: unknown,
  request: DynamoDbRequest,
  reply: ObservedReply,
): 'conflict' {
  const { sent, status = 0 } = reply;
  const failed = failing(request);
  if (!sent) throw beforeSending(error, failing(request, error));
  if (status === 0 || isTimeout(error) || networkErrors(error).length > 0)
    throw lostConnection(error, (cause) => failing(request, cause), request.endpoint);
  const name = codeOf(error) ?? '';
  // A signature that does not match is answered with all of the text to be signed.
  const message = messageOf(error).slice(0, 200);
  const said = name === '' ? `HTTP ${status}` : `HTTP ${status}, ${name}${message}`;
  if (status >= 500) throw failed('unavailable', 'unknown', `answered ${said}`);
  const meaning = EXCEPTIONS[name];
  if (meaning === undefined)
    throw failed('rejected', 'unknown', `answered ${said}, but not as DynamoDB does`);
  if (meaning === 'conflict' && action === 'PutItem') return meaning;
  const needs = name === 'AccessDeniedException' ? `, needs dynamodb:${action}` : '';
  const clock = teachesTime(error, reply) ? ': the clock of this host is wrong' : message;
  const keys =
    action === 'PutItem' ? '' : ': is its partition key prefix, and its sort key object, both strings?';
  const details = {
    conflict: `answered ${said}`,
    unavailable: `answered ${said}`,
    missing: 'table does not exist, in this region and account',
    denied: `access denied (${name}${needs})${clock}`,
    rejected: `refused (${said})${keys}`,
  };
  throw failed(meaning === 'conflict' ? 'unavailable' : meaning, 'not-applied', details[meaning]);
}

/** What the exceptions mean that say that nothing was written. */
const EXCEPTIONS: Partial<Record<string, 'conflict' | 'unavailable' | 'missing' | 'denied' | 'rejected'>> = {
  ConditionalCheckFailedException: 'conflict',
  TransactionConflictException: 'conflict',
  ReplicatedWriteConflictException: 'conflict',
  ProvisionedThroughputExceededException: 'unavailable',
  ThrottlingException: 'unavailable',
  RequestLimitExceeded: 'unavailable',
  ResourceNotFoundException: 'missing',
  AccessDeniedException: 'denied',
  UnrecognizedClientException: 'denied',
  ExpiredTokenException: 'denied',
  InvalidSignatureException: 'denied',
  IncompleteSignatureException: 'denied',
  MissingAuthenticationTokenException: 'denied',
  ValidationException: 'rejected',
  SerializationException: 'rejected',
  UnknownOperationException: 'rejected',
  ItemCollectionSizeLimitExceededException: 'rejected',
};
