import { createHash, createHmac } from 'node:crypto';
import type { S3Access } from './servers/minio.js';

const TYPE = 'application/x-www-form-urlencoded';
const SIGNED = 'content-type;host;x-amz-date';

/**
 * {@link policyEnvironment} with a policy of few rights.
 *
 * @param rights what it may do, such as `s3:GetObject`, and with which buckets and objects, as in a policy:
 * an asterisk for all of them
 * @throws Error when the server gives out none
 */
export function restrictedEnvironment(
  s3: S3Access,
  rights: Readonly<Record<string, string>>,
): Promise<Record<string, string>> {
  const statements = Object.entries(rights).map(([Action, of]) => ({
    Effect: 'Allow',
    Action,
    Resource: `arn:aws:s3:::${of}`,
  }));
  return policyEnvironment(s3, { Version: '2012-10-17', Statement: statements });
}

/**
 * The environment of a process that may do on the test server what a policy allows: temporary credentials of
 * a role, as a task on ECS has them.
 *
 * @throws Error when the server gives out none
 */
export async function policyEnvironment(
  { endpoint, region, accessKeyId, secretAccessKey }: S3Access,
  policy: object,
): Promise<Record<string, string>> {
  const form = {
    Action: 'AssumeRole',
    Version: '2011-06-15',
    DurationSeconds: '3600',
    Policy: JSON.stringify(policy),
  };
  const body = new URLSearchParams(form).toString();
  const date = new Date().toISOString().replace(/[-:]|\.\d+/g, '');
  const scope = `${date.slice(0, 8)}/${region}/sts/aws4_request`;
  const headers = [`content-type:${TYPE}`, `host:${new URL(endpoint).host}`, `x-amz-date:${date}`];
  const request = ['POST', '/', '', ...headers, '', SIGNED, sha256(body)].join('\n');
  const key = scope
    .split('/')
    .reduce<string | Buffer>((last, part) => hmac(last, part), `AWS4${secretAccessKey}`);
  const signature = hmac(key, ['AWS4-HMAC-SHA256', date, scope, sha256(request)].join('\n')).toString('hex');
  const authorization = `AWS4-HMAC-SHA256 Credential=${accessKeyId}/${scope}, SignedHeaders=${SIGNED}, Signature=${signature}`;
  const reply = await fetch(endpoint, {
    method: 'POST',
    body,
    headers: { 'content-type': TYPE, 'x-amz-date': date, authorization },
  });
  const text = await reply.text();
  if (!reply.ok) throw new Error(`no temporary credentials: status ${reply.status}: ${text}`);
  const field = (name: string) => new RegExp(`<${name}>([^<]+)</${name}>`).exec(text)?.[1] ?? '';
  return {
    AWS_ACCESS_KEY_ID: field('AccessKeyId'),
    AWS_SECRET_ACCESS_KEY: field('SecretAccessKey'),
    AWS_SESSION_TOKEN: field('SessionToken'),
    AWS_REGION: region,
  };
}

function sha256(text: string): string {
  return createHash('sha256').update(text).digest('hex');
}

function hmac(key: string | Buffer, text: string): Buffer {
  return createHmac('sha256', key).update(text).digest();
}
