import { messageOf } from '../../base/fields.js';
import { unanswered } from '../aws/failures.js';
import { codeOf, type ObservedReply, teachesTime } from '../aws/observed-reply.js';
import type { StoreFault } from '../lease-store.js';
import { failing, isConditional, type StoreRequest } from '../store-request.js';

/**
 * Says what a failed request to DynamoDB means, by the name of its exception, the HTTP status and the operating
 * system's error code; never by the text. This is the only place that knows these. Nothing was written only
 * where an exception of DynamoDB says so: a reply with a status below 500 may have been cut, or may come from a
 * proxy.
 *
 * @returns for `create` and `replace` only
 * @throws {StoreError} for everything else
 */
export function classifyReply(error: unknown, request: StoreRequest, reply: ObservedReply): 'conflict' {
  const lost = unanswered(error, request, reply);
  if (lost) throw lost;
  const { status = 0 } = reply;
  const failed = failing(request);
  const name = codeOf(error) ?? '';
  // A signature that does not match is answered with all of the text to be signed.
  const message = messageOf(error).slice(0, 200);
  const said = `answered HTTP ${status}${name && `, ${name}${message}`}`;
  if (status >= 500) throw failed('unavailable', 'unknown', said);
  if (CONFLICTS.includes(name) && isConditional(request)) return 'conflict';
  const refused = (fault: StoreFault, detail: string) => failed(fault, 'not-applied', detail);
  if (CONFLICTS.includes(name) || BUSY.includes(name)) throw refused('unavailable', said);
  if (name === 'ResourceNotFoundException')
    throw refused('missing', 'table does not exist, in this region and account, or is not active yet');
  if (DENIED.includes(name)) {
    const needs = name === 'AccessDeniedException' ? `, needs ${request.needs}` : '';
    const why = teachesTime(error, reply) ? ': the clock of this host is wrong' : message;
    throw refused('denied', `access denied (${name}${needs})${why}`);
  }
  if (!REJECTED.includes(name)) throw failed('rejected', 'unknown', `${said}, but not as DynamoDB does`);
  const keys = isConditional(request)
    ? ''
    : ': is its partition key prefix, and its sort key object, both strings?';
  throw refused('rejected', `refused (HTTP ${status}, ${name}${message})${keys}`);
}

// The exceptions that say that nothing was written.

const CONFLICTS = [
  'ConditionalCheckFailedException',
  'TransactionConflictException',
  'ReplicatedWriteConflictException',
];

const BUSY = ['ProvisionedThroughputExceededException', 'ThrottlingException', 'RequestLimitExceeded'];

const DENIED = [
  'AccessDeniedException',
  'UnrecognizedClientException',
  'ExpiredTokenException',
  'InvalidSignatureException',
  'IncompleteSignatureException',
  'MissingAuthenticationTokenException',
];

const REJECTED = [
  'ValidationException',
  'SerializationException',
  'UnknownOperationException',
  'ItemCollectionSizeLimitExceededException',
];
