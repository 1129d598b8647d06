import { mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { mkdir } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, describe, expect, inject, it } from 'vitest';
import { awsEnvironment, createBucket } from './support/bucket.js';
import { guidePages } from './support/guide-pages.js';
import { packageRoot } from './support/package-root.js';
import { cliFile, killAll, runProcess, type TestProcess } from './support/processes.js';
import { freePort } from './support/servers/free-ports.js';
import { uniqueChroot } from './support/zookeeper.js';

// The consoles of README and guides are typed in, page by page, in one folder with the files that they name.
// `<!-- console` in the line above has commands that readers do not see. Of a block marked `sample` the shown
// output is one of many and is not compared; one marked `no-run` needs what is not here. Commands of npm are
// for other folders than this one.

const BLOCK = /(?:^<!-- console\n([\s\S]*?)-->\n)?^```console( sample)?\n([\s\S]*?)^```$/gm;
/** They run until Ctrl-C. */
const ENDLESS = /^nodelease (serve|console|discovery serve|\w+ watch)\b/;

interface Typed {
  readonly command: string;
  /** What the page shows below it; undefined where it is not compared. */
  readonly shown: string | undefined;
}

function typedIn(page: string): Typed[] {
  const text = readFileSync(join(packageRoot, page), 'utf8');
  return [...text.matchAll(BLOCK)].flatMap(([, hidden = '', sample, block = '']) =>
    `${hidden}${block}`
      .split(/^\$ /m)
      .slice(1)
      .map((entry) => {
        const [, command = '', output = ''] = /^((?:.*\\\n)*.*)\n([\s\S]*)$/.exec(entry) ?? [];
        return { command, shown: sample === undefined && output !== '' ? output : undefined };
      })
      .filter(({ command }) => !command.startsWith('npm ')),
  );
}

const pages = guidePages.map((page) => [page, typedIn(page)] as const);
const folders: string[] = [];

afterEach(killAll);
afterAll(() => {
  for (const folder of folders) rmSync(folder, { recursive: true, force: true });
});

/** A folder with the programs that the pages run, and nodelease as `npm install` leaves it. */
async function projectFolder(): Promise<string> {
  const folder = mkdtempSync(join(tmpdir(), 'nodelease-consoles-'));
  folders.push(folder);
  await mkdir(join(folder, 'node_modules/.bin'), { recursive: true });
  symlinkSync(cliFile, join(folder, 'node_modules/.bin/nodelease'));
  writeFileSync(join(folder, 'server.js'), 'if (!process.env.NODE_ID) process.exit(1);');
  for (const script of ['report.sh', 'scheduler'])
    writeFileSync(join(folder, script), '#!/bin/sh\ntest -n "$LOCK_TOKEN"\n', { mode: 0o755 });
  return folder;
}

describe('the consoles of README and guides', () => {
  it('are some', () => {
    expect(pages.flatMap(([, typed]) => typed).length).toBeGreaterThan(30);
  });

  it.each(pages.filter(([, typed]) => typed.length > 0))(
    '%s does what it shows',
    async (_, typed) => {
      const folder = await projectFolder();
      const [s3, bucket, http] = [inject('s3'), await createBucket(inject('s3')), await freePort()];
      const here = (text: string) =>
        text
          .replaceAll('s3://my-bucket', `s3://${bucket.name}`)
          .replaceAll('http://127.0.0.1:9000', s3.endpoint)
          .replaceAll('127.0.0.1:7070', `127.0.0.1:${http}`)
          .replaceAll(/zk1:2181(,zk\d:2181)*/g, `${inject('zookeeper').connect}${chroot}`)
          .replaceAll(/(etcd-\d|127\.0\.0\.1):2379(,etcd-\d:2379)*/g, inject('etcd').address)
          .replaceAll('/mnt/data', join(folder, 'data'));
      const chroot = uniqueChroot('consoles');
      const env = {
        ...awsEnvironment(s3),
        ...{ AWS_ENDPOINT_URL_S3: s3.endpoint, PATH: `${folder}/node_modules/.bin:${process.env.PATH}` },
      };
      let exports = '';
      let endless: TestProcess | undefined;
      for (const { command, shown } of typed) {
        if (command.startsWith('export ')) exports += `${here(command)}\n`;
        const isEndless = ENDLESS.test(command);
        if (isEndless) await interrupt(endless);
        const prefix = isEndless ? `NODELEASE_HTTP=127.0.0.1:${http} exec ` : '';
        const line = `${exports}${prefix}${here(command)}`;
        const started = runProcess('bash', ['-c', line], { cwd: folder, env });
        if (isEndless) {
          endless = started;
          await started.waitForOutput(/./);
          continue;
        }
        const { code } = await started.exit;
        expect(code, `${command}\n${started.stdout()}${started.stderr()}`).toBe(0);
        if (shown !== undefined) expect(timeless(started.stdout()), command).toBe(timeless(shown));
      }
      await interrupt(endless);
    },
    600_000,
  );
});

/** As Ctrl-C ends it. */
async function interrupt(endless: TestProcess | undefined): Promise<void> {
  endless?.kill('SIGINT');
  const end = await endless?.exit;
  expect([undefined, 0, 130]).toContain(end?.code);
}

/** Without what is another one each time: when, and by whom. */
function timeless(output: string): string {
  return output.replace(/\S+T\S+Z +\S+@\S+ */g, 'AT AUTHOR ').replace(/ +/g, ' ');
}
