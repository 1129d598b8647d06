// Makes the table of docs/design/protocol.md: what `nodelease doctor` says of S3 servers, ten times
// each, next to what is true of them.
//   node .harness/test/support/servers/s3-server-table.js [NAME…]      prints the rows

import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { awsEnvironment, createBucket } from '../bucket.js';
import { packageRoot } from '../package-root.js';
import { S3_SERVERS, type S3ServerName, startS3Server } from './s3-servers.js';

const RUNS = 10;

interface Finding {
  readonly id: string;
  readonly status: 'ok' | 'warning' | 'fault';
  readonly detail: string;
}

async function doctor(
  args: readonly string[],
  env: Readonly<Record<string, string>>,
): Promise<{ readonly ok: boolean; readonly findings: readonly Finding[] }> {
  const command = [join(packageRoot, 'dist/cli/nodelease.js'), 'doctor', '--json', ...args];
  const answer = await new Promise<string>((resolve) =>
    execFile(
      process.execPath,
      command,
      { env: { PATH: process.env.PATH, ...env }, maxBuffer: 1 << 24 },
      (_, stdout) => resolve(stdout),
    ),
  );
  return JSON.parse(answer);
}

async function row(name: S3ServerName): Promise<string> {
  const server = await startS3Server(name);
  try {
    const { name: bucket } = await createBucket(server);
    let passed = 0;
    const seen = new Map<string, number>();
    for (let run = 0; run < RUNS; run += 1) {
      const { ok, findings } = await doctor(
        ['--store', `s3://${bucket}/run-${run}`, '--endpoint', server.endpoint],
        awsEnvironment(server),
      );
      if (ok) passed += 1;
      for (const { id, status, detail } of findings) {
        if (status === 'ok') continue;
        // What a server does, without the figures of one run.
        const what = detail
          .replace(/probe-\w+/g, 'probe-…')
          .replace(/s3:\/\/\S+?: /g, '')
          .replace(/\d+ (of \d+ )?(races|concurrent|racing|ms)/g, '… $2');
        const text = `${status === 'fault' ? '**fault**' : 'warning'} ${id}: ${what}`;
        seen.set(text, (seen.get(text) ?? 0) + 1);
      }
    }
    const found = [...seen].map(([text, times]) => `${times} × ${text}`);
    return `| ${name} | ${passed} of ${RUNS} | ${RUNS - passed} of ${RUNS} | ${found.join('<br>')} |`;
  } finally {
    await server.stop();
  }
}

const names = process.argv.slice(2) as S3ServerName[];
for (const name of names.length > 0 ? names : S3_SERVERS) process.stdout.write(`${await row(name)}\n`);
