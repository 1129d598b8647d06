import { cpSync, mkdirSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { awsEnvironment, createBucket } from '../../../support/bucket.js';
import { packageRoot } from '../../../support/package-root.js';
import { runCli } from '../../../support/processes.js';
import type { S3Access } from '../../../support/servers/minio.js';
import { newFolder } from './run-support.js';

/** A bucket of leases, as the environment of the examples names it. */
export interface ExampleStore {
  readonly env: Readonly<Record<string, string>>;
  /** What `nodelease status` says of a node id. */
  status(nodeId: number): Promise<{ readonly state: string; readonly version: number | null }>;
}

/** A store that no other test uses. */
export async function exampleStore(s3: S3Access): Promise<ExampleStore> {
  const { name } = await createBucket(s3);
  const env = {
    ...awsEnvironment(s3),
    NODELEASE_STORE: `s3://${name}/example`,
    AWS_ENDPOINT_URL_S3: s3.endpoint,
  };
  return {
    env,
    async status(nodeId) {
      const status = runCli(['status', '--json', '--all'], { env });
      const { code } = await status.exit;
      if (code !== 0) throw new Error(`status ended with ${code}: ${status.stderr()}`);
      const { nodes } = JSON.parse(status.stdout()) as {
        nodes: { id: number; state: string; version: number | null }[];
      };
      const found = nodes.find(({ id }) => id === nodeId);
      if (found === undefined) throw new Error(`there is no node id ${nodeId}`);
      return found;
    },
  };
}

/**
 * A copy of an example's folder in which its dependencies are installed. It is gone after `removeFolders`.
 */
export function exampleFolder(name: string, dependencies: readonly string[] = []): string {
  const folder = newFolder();
  cpSync(join(packageRoot, 'examples', name), folder, {
    recursive: true,
    filter: (file) => !file.includes('node_modules'),
  });
  mkdirSync(join(folder, 'node_modules'));
  for (const dependency of dependencies) {
    const installed =
      dependency === 'nodelease' ? packageRoot : join(packageRoot, 'node_modules', dependency);
    symlinkSync(installed, join(folder, 'node_modules', dependency));
  }
  return folder;
}
