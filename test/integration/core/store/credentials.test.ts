import { createHash } from 'node:crypto';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { killAll, runCli } from '../../../support/processes.js';

// Everything that hands out credentials, and an S3 server that shows whose they are: each source gives a key
// of its own name.

const EXPIRATION = new Date(Date.now() + 3_600_000);

const json = (key: string) => JSON.stringify({ Code: 'Success', ...temporary(key) });

function temporary(key: string) {
  return {
    AccessKeyId: key,
    SecretAccessKey: 'secret',
    Token: 'token',
    SessionToken: 'token',
    Expiration: EXPIRATION.toISOString(),
  };
}

function assumedRole(action: string, key: string): string {
  const { Token: _, ...credentials } = temporary(key);
  const fields = Object.entries(credentials).map(([name, value]) => `<${name}>${value}</${name}>`);
  return `<${action}Response><${action}Result><Credentials>${fields.join('')}</Credentials></${action}Result></${action}Response>`;
}

/** Answers as the services that hand out credentials do; undefined where no service is asked. */
function credentials(method: string, url: URL, body: URLSearchParams): string | undefined {
  switch (`${method} ${url.pathname}`) {
    case 'GET /container':
      return json('KEYOFCONTAINER');
    case 'PUT /latest/api/token':
      return 'token';
    case 'GET /latest/meta-data/iam/security-credentials/':
      return 'role';
    case 'GET /latest/meta-data/iam/security-credentials/role':
      return json('KEYOFINSTANCE');
    case 'GET /federation/credentials': {
      const role = {
        accessKeyId: 'KEYOFSSO',
        secretAccessKey: 'secret',
        sessionToken: 'token',
        expiration: EXPIRATION.getTime(),
      };
      return JSON.stringify({ roleCredentials: role });
    }
    case 'POST /':
      if (body.get('Action') === 'AssumeRoleWithWebIdentity')
        return assumedRole('AssumeRoleWithWebIdentity', 'KEYOFWEBIDENTITY');
      return assumedRole('AssumeRole', 'KEYOFROLE');
  }
  return undefined;
}

let server: Server;
let endpoint: string;
let home: string;
const signers = new Set<string>();
/** The paths of which the next request is never answered. */
const silent = new Set<string>();

beforeAll(async () => {
  server = createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const body = new URLSearchParams(Buffer.concat(chunks).toString());
    const url = new URL(request.url ?? '/', endpoint);
    if (silent.delete(url.pathname)) return;
    const answer = credentials(request.method ?? '', url, body);
    if (answer !== undefined) return void response.end(answer);
    signers.add(/Credential=(\w+)\//.exec(request.headers.authorization ?? '')?.[1] ?? 'nobody');
    response.writeHead(403).end('<Error><Code>AccessDenied</Code></Error>');
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  endpoint = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  home = await mkdtemp(join(tmpdir(), 'nodelease-credentials-'));
  const files = {
    token: 'token',
    '.aws/credentials': '[keys]\naws_access_key_id = KEYOFPROFILE\naws_secret_access_key = secret\n',
    '.aws/config': [
      `[profile program]\ncredential_process = printf '%s' '${JSON.stringify({ Version: 1, ...temporary('KEYOFPROGRAM') })}'`,
      '[profile role]\nrole_arn = arn:aws:iam::111122223333:role/r\nsource_profile = keys',
      '[profile sso]\nsso_session = company\nsso_account_id = 111122223333\nsso_role_name = r',
      '[sso-session company]\nsso_region = eu-west-1\nsso_start_url = https://company.awsapps.com/start',
    ].join('\n'),
    [`.aws/sso/cache/${createHash('sha1').update('company').digest('hex')}.json`]: JSON.stringify({
      accessToken: 'token',
      expiresAt: EXPIRATION.toISOString(),
    }),
  };
  for (const [name, text] of Object.entries(files)) {
    await mkdir(dirname(join(home, name)), { recursive: true });
    await writeFile(join(home, name), text);
  }
});

afterAll(async () => {
  await killAll();
  server.closeAllConnections();
  server.close();
  await rm(home, { recursive: true, force: true });
});

it.each<[source: string, key: string, env: () => Record<string, string>]>([
  [
    'the environment',
    'KEYOFENVIRONMENT',
    () => ({ AWS_ACCESS_KEY_ID: 'KEYOFENVIRONMENT', AWS_SECRET_ACCESS_KEY: 'secret' }),
  ],
  ['a profile', 'KEYOFPROFILE', () => ({ AWS_PROFILE: 'keys' })],
  ['a role of a profile', 'KEYOFROLE', () => ({ AWS_PROFILE: 'role', AWS_ENDPOINT_URL_STS: endpoint })],
  ['a program', 'KEYOFPROGRAM', () => ({ AWS_PROFILE: 'program' })],
  ['single sign-on', 'KEYOFSSO', () => ({ AWS_PROFILE: 'sso', AWS_ENDPOINT_URL_SSO: endpoint })],
  [
    'a web identity',
    'KEYOFWEBIDENTITY',
    () => ({
      ...{
        AWS_WEB_IDENTITY_TOKEN_FILE: join(home, 'token'),
        AWS_ROLE_ARN: 'arn:aws:iam::111122223333:role/r',
      },
      AWS_ENDPOINT_URL_STS: endpoint,
    }),
  ],
  [
    'a container of ECS or EKS',
    'KEYOFCONTAINER',
    () => ({ AWS_CONTAINER_CREDENTIALS_FULL_URI: `${endpoint}/container` }),
  ],
  ['an instance of EC2', 'KEYOFINSTANCE', () => ({ AWS_EC2_METADATA_SERVICE_ENDPOINT: endpoint })],
])('the command takes its credentials from %s', async (_, key, env) => {
  expect(...(await signersOf(env()))).toEqual([key]);
});

it.each([
  ['a container', 'KEYOFCONTAINER', '/container', 'AWS_CONTAINER_CREDENTIALS_FULL_URI'],
  ['an instance', 'KEYOFINSTANCE', '', 'AWS_EC2_METADATA_SERVICE_ENDPOINT'],
])(
  'the command asks %s for credentials again where one request is never answered',
  async (_, key, path, variable) => {
    silent.add(path || '/latest/meta-data/iam/security-credentials/role');
    expect(...(await signersOf({ [variable]: endpoint + path }))).toEqual([key]);
    expect([...silent]).toEqual([]);
  },
);

/** Whose credentials the command uses, and what it says. */
async function signersOf(env: Record<string, string>): Promise<[readonly string[], string]> {
  signers.clear();
  const status = runCli(['status', '--store', 's3://bucket/leases', '--endpoint', endpoint], {
    env: { HOME: home, AWS_REGION: 'eu-west-1', ...env },
  });
  await status.exit;
  return [[...signers], status.stderr()];
}
