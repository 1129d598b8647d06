import { createHash, createHmac } from 'node:crypto';
import type { S3Access } from './servers/minio.js';

const TYPE = 'application/x-www-form-urlencoded';
const SIGNED = 'content-type;host;x-amz-date';

/**
 * The environment of a process that may do little on the test server: temporary credentials of a role, as a
 * task on ECS has them.
 *
 * @param rights what it may do, such as `s3:GetObject`, and with which buckets and objects, as in a policy:
 * an asterisk for all of them
 * @throws Error when the server gives out none
 */
export async function restrictedEnvironment(
  { endpoint, region, accessKeyId, secretAccessKey }: S3Access,
  rights: Readonly<Record<string, string>>,
): Promise<Record<string, string>> {
  const statements = Object.entries(rights).map(([Action, of]) => ({
    Effect: 'Allow',
    Action,
    Resource: `arn:aws:s3:::${of}`,
  }));
  const policy = { Version: '2012-10-17', Statement: statements };
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
